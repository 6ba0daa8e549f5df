#pragma once
#include "orrery/parallel/run.h"

namespace orrery::sample {

/// Finds the first block that gives a value that is not finite. One more pass over the state per block: used
/// to explain a step that has failed.
class FindNonFinite final : public parallel::BlockPolicy {
 public:
  void step(int64_t i, const Tensor& state, const std::function<void()>& compute) override;

  /// The first such block on this rank, or kNone.
  int64_t first() const { return first_; }

  static constexpr int64_t kNone = -1;

 private:
  int64_t first_ = kNone;
};

}  // namespace orrery::sample
