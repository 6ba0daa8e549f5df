#pragma once
#include <ATen/ops/randn_like.h>

#include "orrery/weights/tensor_map.h"
#include "tests/support/golden.h"

namespace orrery::testing {

/// Calls f(name, tensors) for each tensor in turn, with random values of 5 % of its rms added to it and all
/// others as they are. (A factor would vanish in the norms behind q and k.) Where every result moves, a
/// loader that skipped a tensor or took one for another would be seen.
template <class F>
void for_each_disturbed(const weights::TensorMap& original, const F& f) {
  EXPECT_FALSE(original.empty());
  for (const auto& [name, tensor] : original) {
    weights::TensorMap tensors = original;
    const Tensor wide = tensor.to(at::kFloat);
    tensors[name] = wide + 0.05 * rms(wide) * at::randn_like(wide);
    f(name, tensors);
  }
}

}  // namespace orrery::testing
