#pragma once
#include <memory>
#include <string>
#include <vector>

#include "orrery/comm/group.h"
#include "orrery/comm/liveness.h"

namespace orrery::comm {

/// The sockets and the thread that all groups of a process share.
class GlooDevice;

/// `address`: of this host, as the others reach it. Error of kind resource if it is none.
std::shared_ptr<GlooDevice> make_gloo_device(const std::string& address);

/// What a group over processes is made of.
struct GlooPlace {
  size_t axis = 0;           // which of kAxes
  std::vector<int> members;  // its ranks in the mesh, more than one, this process's included
  std::string run;           // prefix of the store's keys, equal on all members
};

/// One group over processes, through gloo on the CPU, seen from this one; every member makes it at the same
/// time. Messages are packed when they are sent and received into one buffer, of which the tensors that
/// arrive are views; a message to oneself is handed over. Before any data of an exchange is received, a few
/// bytes say which exchange it is and what the sender sends, so that ranks which disagree are told so. What
/// is received is CPU tensors, and so must be what is sent. Errors besides those of group.h: peer, if a
/// member does not come within the timeout of the store's connection.
std::unique_ptr<Group> make_gloo_group(const GlooPlace& place, Store& store,
                                       std::shared_ptr<GlooDevice> device,
                                       std::shared_ptr<Liveness> liveness);

}  // namespace orrery::comm
