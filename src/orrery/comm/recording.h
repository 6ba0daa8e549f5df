#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orrery/comm/mesh.h"

namespace orrery::comm {

/// What one rank has done in one of its groups.
struct Traffic {
  int64_t exchanges = 0;
  std::vector<int64_t> bytes;  // [i]: payload sent to the group's rank i, the own rank included
  double waited = 0;           // seconds inside Exchange::wait

  /// Sent to others.
  int64_t bytes_out(int own_rank) const;
};

/// Counts what goes over the groups of a run:
///
///   Recorder recorder;
///   run_ranks(make_thread_meshes(shape, recorder.decorate()), …);
///   recorder.at(0, "ulysses").exchanges
///
/// Outlives the groups. Each rank writes its own entries only; read them when the ranks have ended.
class Recorder {
 public:
  /// For make_thread_meshes; also puts `inside` around each group before, if given.
  Decorate decorate(Decorate inside = {});

  /// Axes are the names of Mesh's accessors. Error of kind internal for a group that was never made.
  const Traffic& at(int rank, std::string_view axis) const;

  /// Seconds that a rank has waited in all of its groups.
  double waited(int rank) const;

 private:
  std::map<std::pair<int, std::string>, Traffic> traffic_;
};

}  // namespace orrery::comm
