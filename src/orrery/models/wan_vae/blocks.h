#pragma once
// What encoder and decoder are built of (spec cosmos-predict2.5 §8.1). x: [F, H, W, C], contiguous, in the
// compute type.
#include "orrery/models/wan_vae/causal.h"

namespace orrery::wan_vae {

/// conv(x), with x copied into the convolution's input.
Tensor conv_block(const Conv& w, const Tensor& x, Surroundings& around);

/// conv(silu(norm(x))).
Tensor norm_conv(const Tensor& norm, const Conv& w, const Tensor& x, Surroundings& around);

/// x + attention within each frame, and residual blocks around it. x is overwritten.
Tensor mid_block(const MidBlock& w, Tensor x, Surroundings& around);

/// conv2(silu(norm2(conv1(silu(norm1(x)))))) + shortcut(x). x is given up: the sum may be formed in its
/// memory.
Tensor residual(const ResidualBlock& w, Tensor x, Surroundings& around);

/// Half the rows and columns, and half the frames if w has a temporal convolution (a clip's first frame
/// stays).
Tensor downsample(const Resampler& w, const Tensor& x, Surroundings& around);

/// Twice the rows and columns, half the channels, and twice the frames (same exception).
Tensor upsample(const Resampler& w, const Tensor& x, Surroundings& around);

/// x · weightᵀ + bias over channels.
Tensor pointwise(const Pointwise& w, const Tensor& x);

}  // namespace orrery::wan_vae
