#pragma once
#include "orrery/base/tensor.h"
#include "orrery/media/frames.h"

namespace orrery::pipeline {

/// Frames → [3, F, H, W] float32 in −1 … 1. bf16: x/127.5 − 1 with every operation rounded to bfloat16, as
/// the official code does (spec cosmos-predict2.5 §7.1); otherwise 2·(x/255) − 1 as diffusers does.
Tensor to_tensor(const media::Frames& frames, bool bf16);

/// Appends decoded pixels [3, f, H, W] in −1 … 1 (clamped) as 8-bit frames: truncated or rounded (spec §9.4,
/// §7.5).
void append(media::Frames& frames, const Tensor& pixels, bool truncate);

}  // namespace orrery::pipeline
