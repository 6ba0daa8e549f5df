#pragma once
// Convolutions over frames, rows and columns with channels last. There is no padding argument anywhere: the
// caller gives the rows, columns and past frames that the kernel reaches, be they zeros, remembered frames or
// a neighbour's rows.
#include <array>

#include "orrery/base/tensor.h"

namespace orrery::ops {

/// Frames, rows, columns.
using Stride = std::array<int64_t, 3>;

/// x ⋆ weight + bias: [F', H', W', O], contiguous, with F' = (F − kt) / stride + 1 and so on. x: [F, H, W, I]
/// contiguous; weight: [O, I, kt, kh, kw], x's dtype (float32 or bfloat16), best in ChannelsLast3d (any other
/// order is copied); bias: [O], x's dtype. Fewer rows than the kernel's give a result without rows.
/// Row-invariant: an output row's bits do not depend on the rows computed with it.
Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, Stride stride = {1, 1, 1});

/// y += x ⋆ weight + bias in one pass, stride 1. y: [F', H', W', O] contiguous, x's dtype.
void conv_add_(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias);

namespace reference {
Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, Stride stride);
}

}  // namespace orrery::ops
