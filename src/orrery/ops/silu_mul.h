#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// silu(gate) · up (GLU variants, Shazeer 2020, SwiGLU), both [..., F] of one dtype; computed in float32.
Tensor silu_mul(const Tensor& gate, const Tensor& up);

/// x · sigmoid(x) in float32, rounded to x's dtype.
Tensor silu(const Tensor& x);

namespace reference {
Tensor silu_mul(const Tensor& gate, const Tensor& up);
Tensor silu(const Tensor& x);
}  // namespace reference

}  // namespace orrery::ops
