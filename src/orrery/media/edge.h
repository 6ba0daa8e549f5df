#pragma once
#include <string_view>

#include "orrery/media/frames.h"

namespace orrery::media {

/// Canny's thresholds on the gradient |dx| + |dy| of a 3 × 3 Sobel filter. A pixel above `high` is an edge,
/// and one above `low` that is connected to it.
struct EdgeThresholds {
  int low = 100, high = 200;
  bool operator==(const EdgeThresholds&) const = default;
};

/// The reference's thresholds by the name of the preset (spec cosmos-transfer2.5 §3.2). Errors as
/// preset_index.
EdgeThresholds edge_preset(std::string_view name);

/// The edge hint of every frame, white on black: OpenCV's Canny on RGB, where the channel with the largest
/// gradient decides, without smoothing before. The reference computes it from frames of the model's size;
/// edges that are resized afterwards are others. Frames are treated alike, the argument is left alone, any
/// thread may call. Error of kind request for an empty clip or thresholds that are negative or fall.
Frames edges(const Frames& frames, EdgeThresholds thresholds);

}  // namespace orrery::media
