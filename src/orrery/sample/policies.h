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

/// Shows the state of all tokens, [S, E], after each of the first blocks of every forward, on every rank.
class ObserveBlocks final : public parallel::BlockPolicy {
 public:
  using Show = std::function<void(int64_t forward, int64_t block, const Tensor& state)>;

  /// length: all tokens.
  ObserveBlocks(const parallel::Context& ctx, int64_t length, int64_t blocks, Show show)
      : ctx_(ctx), length_(length), blocks_(blocks), show_(std::move(show)) {}

  void step(int64_t i, const Tensor& state, const std::function<void()>& compute) override;

 private:
  const parallel::Context& ctx_;
  const int64_t length_, blocks_;
  const Show show_;
  int64_t forward_ = -1;
};

}  // namespace orrery::sample
