#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// x / sqrt(mean(x², last dim) + eps) · weight. The mean is taken in float32; the result has x's dtype.
/// x: [..., D], weight: [D] of any floating type.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

/// rms_norm over each head, then the rotation of half-split pairs (j, j + D/2): RoFormer, Su et al. 2021, in
/// the GPT-NeoX layout. x: [S, N, D], weight: [D] or undefined (no norm), rope: [S, D] float32 with cos in
/// the first half and sin in the second, or undefined (no rotation). Norm and rotation are computed in
/// float32 and rounded once to x's dtype.
Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& rope, double eps);

namespace reference {
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);
Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& rope, double eps);
}  // namespace reference

}  // namespace orrery::ops
