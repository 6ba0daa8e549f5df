#pragma once
#include <cstdint>

#include "orrery/media/frames.h"

namespace orrery::media {

/// torchvision's antialiased bicubic resize of 8-bit tensors as its transforms.functional computes it: in
/// float32, clamped and rounded half to even once at the end. (Its transforms.v2 is stretch_torch.) Frames
/// are treated alike, the argument is left alone, any thread may call. Error of kind request for an empty
/// clip or size.
Frames stretch_bicubic(const Frames& frames, int64_t height, int64_t width);

}  // namespace orrery::media
