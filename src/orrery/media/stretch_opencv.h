#pragma once
#include <cstdint>

#include "orrery/media/frames.h"
#include "orrery/media/mask.h"

namespace orrery::media {

enum class OpencvFilter { kNearest, kLinear, kArea, kLanczos4 };

/// cv::resize of 8-bit pictures: aspect is not kept, and only kArea smooths what shrinks. Frames are treated
/// alike, the argument is left alone, any thread may call. Error of kind request for an empty clip or size.
Frames stretch_opencv(const Frames& frames, int64_t height, int64_t width, OpencvFilter filter);

/// The same for masks.
Mask stretch_opencv(const Mask& mask, int64_t height, int64_t width, OpencvFilter filter);

}  // namespace orrery::media
