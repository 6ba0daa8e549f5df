#include "orrery/sample/policies.h"

#include <ATen/ops/isfinite.h>

namespace orrery::sample {

void FindNonFinite::step(int64_t i, const Tensor& state, const std::function<void()>& compute) {
  compute();
  if (first_ == kNone && !at::isfinite(state).all().item<bool>()) first_ = i;
}

}  // namespace orrery::sample
