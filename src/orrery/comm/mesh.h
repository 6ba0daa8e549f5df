#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/comm/group.h"
#include "orrery/comm/mesh_shape.h"
#include "orrery/comm/ranks.h"
#include "orrery/comm/split.h"

namespace orrery::comm {

/// The groups of one rank. Used by the thread that is this rank. Movable; groups live as long as the mesh.
class Mesh {
 public:
  /// In the order of kAxes.
  using Groups = std::array<std::unique_ptr<Group>, kAxes.size()>;

  Mesh(MeshShape shape, int rank, Groups groups, std::shared_ptr<Ranks> ranks);

  const MeshShape& shape() const { return shape_; }
  int rank() const { return rank_; }
  int size() const { return shape_.size(); }

  Group& cfg() const { return *groups_[0]; }      // the ranks that differ in the guidance branch only
  Group& ring() const { return *groups_[1]; }     // … in the place on the ring only
  Group& ulysses() const { return *groups_[2]; }  // … in the share of heads only
  Group& sequence() const {
    return *groups_[3];
  }  // ring × ulysses: those that share a branch's tokens, in order
  Group& control() const { return *groups_[4]; }  // all ranks, for decisions: always on the CPU
  Group& world() const { return *groups_[5]; }    // all ranks, for data

  /// Says that this rank makes no more exchanges because of `reason`; the others' exchanges then fail.
  /// Returns that as they are told it (ranks.h). Any thread.
  std::string fail(std::string_view reason) const;

  /// Says that this rank has done its work.
  void finish() const;

 private:
  MeshShape shape_;
  int rank_;
  std::shared_ptr<Ranks> ranks_;  // outlives the groups
  Groups groups_;
};

/// Puts a decorator (fault injection, recording) around a group as it is made, or returns it as it is. `axis`
/// is the name of the group's accessor above.
using Decorate =
    std::function<std::unique_ptr<Group>(int rank, std::string_view axis, std::unique_ptr<Group> group)>;

/// One mesh per rank, [r] for rank r, over ranks that are threads of this process; they serve one run (a
/// failure is for good). Axes of one rank are Solo. Error of kind request if the shape has an axis below 1 or
/// more than two cfg ranks.
std::vector<Mesh> make_thread_meshes(const MeshShape& shape, const Decorate& decorate = {});

}  // namespace orrery::comm
