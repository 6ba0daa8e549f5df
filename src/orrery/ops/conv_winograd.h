#pragma once
// Winograd's minimal filtering F(2×2, 3×3) (Lavin and Gray, "Fast algorithms for convolutional neural
// networks", 2015, equations 8 to 11): 16 multiplications where the direct form takes 36, summed over the
// temporal taps in the transformed domain. In float32 its rounding error is about twice that of the direct
// form; half types are too coarse for it.
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// True where conv_winograd applies: float32 [O, I, kt, 3, 3] with I and O multiples of 16, on a CPU.
bool winograd_fits(const Tensor& weight);

/// G w Gᵀ of each 3×3 kernel, in float64, rounded once: [kt, 16, O/16, I, 16] float32. weight must fit. The
/// kernel has the reference's bits.
Tensor winograd_weight(const Tensor& weight);

/// conv(x, weight, bias) of ops/conv.h at stride 1, for an even number of output rows (0 too) and columns, up
/// to rounding. x: [F, H+2, W+2, I] contiguous float32; weight: winograd_weight's result or the last temporal
/// taps of it; bias: [O] float32. Row-invariant for splits at even rows.
Tensor conv_winograd(const Tensor& x, const Tensor& weight, const Tensor& bias);

/// y += the same. y: [F', H, W, O] contiguous float32.
void conv_winograd_add_(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias);

namespace reference {
Tensor winograd_weight(const Tensor& weight);
void conv_winograd(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias, bool add);
}  // namespace reference

}  // namespace orrery::ops
