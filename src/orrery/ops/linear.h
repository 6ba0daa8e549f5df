#pragma once
#include <optional>

#include "orrery/base/tensor.h"

namespace orrery::ops {

/// What is applied to each output of a linear layer, without another pass over memory.
enum class Activation { kNone, kGelu, kGeluTanh, kSilu };

/// activation(x · weightᵀ + bias). x: [..., K] float32 or bfloat16, weight: [N, K], bias: [N]; the result is
/// [..., N] in x's dtype. The weight may be stored narrower than x (bfloat16 or float16 in a mapped file): it
/// is then widened block by block into a small reused buffer, and the bits are those of a call with the whole
/// weight widened first. kGelu is the exact (erf) form. Row-invariant (docs/numerics.md).
Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias = {},
              Activation activation = Activation::kNone);

namespace reference {
Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
              Activation activation);
}  // namespace reference

}  // namespace orrery::ops
