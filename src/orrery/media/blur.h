#pragma once
#include <cstdint>
#include <string_view>

#include "orrery/media/frames.h"

namespace orrery::media {

struct BlurStrength {
  int64_t shrink = 2;       // the bilateral filter works on pictures smaller by this factor
  int64_t resolution = 10;  // afterwards detail below this many pixels is lost
  bool operator==(const BlurStrength&) const = default;
};

/// The reference's strengths by the name of the preset (spec cosmos-transfer2.5 §3.3). Errors as
/// preset_index.
BlurStrength blur_preset(std::string_view name);

/// The blur hint ("vis") of every frame: a bilateral filter over 31 × 31 pixels, between a smaller and the
/// full size, then down by `resolution` and up again. The reference computes it from frames of the model's
/// size. Frames are treated alike, the argument is left alone, any thread may call. Error of kind request for
/// an empty clip, factors below 1, or frames that are smaller than a factor.
Frames blur(const Frames& frames, BlurStrength strength);

}  // namespace orrery::media
