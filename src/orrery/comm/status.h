#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/comm/mesh_shape.h"

namespace orrery::comm {

enum class Activity { kRuns, kWaits, kFinished, kLeft };

/// What a process rank tells the others about itself, with every beat.
struct Status {
  int64_t beat = 0;
  Activity activity = Activity::kRuns;
  size_t axis = 0;                                 // the last operation: exchange number `exchange`
  int64_t exchange = 0;                            // (from 1; 0 before the first) of the group of this axis
  std::array<int64_t, kAxes.size()> entered = {};  // how many exchanges of each group it has entered
  std::string failure;  // why the run has failed, as far as it knows; "" if it has not
};

/// One line; parse_status() reads it back. Error of kind internal if the text is no status.
std::string to_string(const Status& status);
Status parse_status(const std::string& text);

/// "at exchange 12 of group ulysses"
std::string operation(size_t axis, int64_t exchange);
inline std::string operation(const Status& status) { return operation(status.axis, status.exchange); }

/// How a rank looks to another one.
struct Peer {
  Status status;          // of its last beat
  size_t heard_axis = 0;  // the last exchange that a message of its came from; may be later than its status
  int64_t heard = 0;
  bool ended = false;     // its process is no more
  double silent = 0;      // seconds since its last beat
  double unchanged = 0;   // seconds since the rest of its status changed
  std::string suspicion;  // what happened to the connection with it; "" if nothing
  double suspected = 0;   // seconds since then
};

/// Why the run cannot go on.
struct Failure {
  ErrorKind kind = ErrorKind::kPeer;
  std::string message;
};

/// What a rank knows about the run.
struct View {
  int self = 0;
  MeshShape shape;
  std::vector<Peer> ranks;                              // all of them, the own included
  double heartbeat = 1, lost = 10, no_progress = 1800;  // seconds
};

/// The first of these that holds: a rank says that the run has failed; the process of a rank has ended before
/// it finished, or while the own rank waits for it; a rank is silent for too long; the connection with a rank
/// is lost, and nothing else explains it; all ranks wait or have finished and none of them can go on; a rank
/// for which the own rank waits has made no progress for too long. A pure function.
std::optional<Failure> judge(const View& view);

}  // namespace orrery::comm
