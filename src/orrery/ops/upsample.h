#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// The 3×3 convolution `weight` [O, I, 3, 3] after nearest-neighbour ×2, as four 2×2 convolutions of the
/// small picture, one for each parity of output row and column: a 2×2 block of the large picture is one pixel
/// of the small one, so taps that meet the same pixel add up. Result: [4·O, I, 1, 2, 2], parities (0,0),
/// (0,1), (1,0), (1,1); added in float32, in weight's dtype.
Tensor upsample_weight(const Tensor& weight);

/// conv2d(nearest_upsample×2(x), weight, bias) without its padding: [F, 2H, 2W, O] contiguous, with 4/9 of
/// the multiplications. x: [F, H+2, W+2, I] contiguous, H ≥ 0: the small picture and one pixel around it
/// (zeros at a picture's edge); weight: upsample_weight's result; bias: [O]. Row-invariant.
Tensor upsample_conv(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace orrery::ops
