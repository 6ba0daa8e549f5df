#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// out ← x / max(‖x‖₂, 1e-12) · √C · weight over the last dimension (the "RMS norm" of the Wan VAE), followed
/// by silu(y) = y · sigmoid(y) if `silu`. Computed in float32, rounded once to x's dtype. x: [F, H, W, C]
/// contiguous, float32 or bfloat16; weight: [C] of any floating type. out: x's shape and dtype; frames and
/// rows may be strided, so that it can be the interior of a padded buffer; pixels of a row are contiguous.
/// Row-invariant: a pixel's bits depend on that pixel only.
void channel_norm(const Tensor& x, const Tensor& weight, bool silu, const Tensor& out);

namespace reference {
void channel_norm(const Tensor& x, const Tensor& weight, bool silu, const Tensor& out);
}

}  // namespace orrery::ops
