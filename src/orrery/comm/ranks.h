#pragma once
#include <string>
#include <string_view>

namespace orrery::comm {

/// The ranks of a run, as far as they must hear of each other's end. Any thread.
class Ranks {
 public:
  virtual ~Ranks() = default;

  /// Says that `rank`, which the caller is, makes no more exchanges because of `reason`: from now on every
  /// waiting or later exchange, of every rank and in every group, throws an Error of kind peer that names
  /// this rank, its last operation and the reason. The first failure is the one that is told. Returns this
  /// one as it would be told: "rank 2 failed at exchange 12 of group ulysses: REASON".
  virtual std::string fail(int rank, std::string_view reason) = 0;

  /// Says that `rank`, which the caller is, has done its work.
  virtual void finish(int rank) = 0;
};

}  // namespace orrery::comm
