#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// x / sqrt(mean(x², last dim) + eps) · weight. The mean is taken in float32; the result has x's dtype.
/// x: [..., D], weight: [D] of any floating type.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

/// Which two channels of a head the j-th of its D/2 angles rotates (RoFormer, Su et al. 2021): (j, j + D/2),
/// the GPT-NeoX layout, or (2j, 2j + 1), the paper's.
enum class Pairs { kHalves, kAdjacent };

/// rms_norm over each head, then the rotation (a, b) → (a·cos − b·sin, b·cos + a·sin) of its pairs. x: [S, N,
/// D], weight: [D] or undefined (no norm), rope: [S, D] float32 with cos in the first half and sin in the
/// second whatever the pairs are, or undefined (no rotation). Norm and rotation are computed in float32 and
/// rounded once to x's dtype.
Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& rope, double eps,
                     Pairs pairs = Pairs::kHalves);

namespace reference {
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);
Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& rope, double eps,
                     Pairs pairs = Pairs::kHalves);
}  // namespace reference

}  // namespace orrery::ops
