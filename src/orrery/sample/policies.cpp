#include "orrery/sample/policies.h"

#include <ATen/ops/isfinite.h>

namespace orrery::sample {

void FindNonFinite::step(int64_t i, const Tensor& state, const std::function<void()>& compute) {
  compute();
  if (first_ == kNone && !at::isfinite(state).all().item<bool>()) first_ = i;
}

void ObserveBlocks::step(int64_t i, const Tensor& state, const std::function<void()>& compute) {
  compute();
  if (i == 0) ++forward_;
  // A copy: what is sent may not change any more, and the next block changes the state.
  if (i < blocks_) show_(forward_, i, parallel::gather(ctx_.mesh.sequence(), state.clone(), length_));
}

}  // namespace orrery::sample
