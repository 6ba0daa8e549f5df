#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/comm/group.h"
#include "orrery/comm/split.h"
#include "orrery/comm/threads.h"

namespace orrery::comm {

/// How many ranks each axis has, all ≥ 1.
struct MeshShape {
  int cfg = 1;      // guidance branches: 1 or 2
  int ring = 1;     // ring attention
  int ulysses = 1;  // head-split attention
  int size() const { return cfg * ring * ulysses; }
  bool operator==(const MeshShape&) const = default;
};

/// "cfg2 × ring1 × ulysses4"
std::string to_string(const MeshShape& shape);

/// The groups of one rank. Rank r stands at r = (cfg · rings + ring) · ulysses_size + ulysses: ulysses is the
/// fastest axis, then ring, then cfg. Used by the thread that is this rank. Movable; groups live as long as
/// the mesh.
class Mesh {
 public:
  struct Groups {
    std::unique_ptr<Group> cfg, ring, ulysses, sequence, control, world;
  };

  Mesh(MeshShape shape, int rank, Groups groups, std::shared_ptr<ThreadRanks> threads);

  const MeshShape& shape() const { return shape_; }
  int rank() const { return rank_; }
  int size() const { return shape_.size(); }

  Group& cfg() const { return *groups_.cfg; }          // the ranks that differ in the guidance branch only
  Group& ring() const { return *groups_.ring; }        // … in the place on the ring only
  Group& ulysses() const { return *groups_.ulysses; }  // … in the share of heads only
  Group& sequence() const {
    return *groups_.sequence;
  }  // ring × ulysses: the ranks that share a branch's tokens, in order
  Group& control() const { return *groups_.control; }  // all ranks, for decisions: always on the CPU
  Group& world() const { return *groups_.world; }      // all ranks, for data

  /// Says that this rank makes no more exchanges because of `reason`; the others' exchanges then fail. Any
  /// thread.
  void fail(std::string_view reason) const;

  /// Says that this rank has done its work.
  void finish() const;

 private:
  MeshShape shape_;
  int rank_;
  Groups groups_;
  std::shared_ptr<ThreadRanks> threads_;
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
