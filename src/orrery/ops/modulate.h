#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

// Adaptive layer norm (DiT, Peebles & Xie 2022, figure 3) where tokens of one clip may have different times:
// `shift`, `scale` and `gate` have one row per distinct time, and row[s] says which one token s uses.

/// layer_norm(x, no affine, eps) · (1 + scale[row]) + shift[row]. x: [S, E]; shift, scale: [R, E] float32;
/// row: [S] int32 with values in 0 … R−1. Computed in float32; the result has x's dtype.
Tensor layer_norm_modulate(const Tensor& x, const Tensor& shift, const Tensor& scale, const Tensor& row,
                           double eps);

/// x += gate[row] · y, in place. x, y: [S, E] of one dtype, contiguous; gate: [R, E] float32; row: [S] int32.
void add_gated_(const Tensor& x, const Tensor& gate, const Tensor& y, const Tensor& row);

namespace reference {
Tensor layer_norm_modulate(const Tensor& x, const Tensor& shift, const Tensor& scale, const Tensor& row,
                           double eps);
void add_gated_(const Tensor& x, const Tensor& gate, const Tensor& y, const Tensor& row);
}  // namespace reference

}  // namespace orrery::ops
