#pragma once
#include <opencv2/core.hpp>
#include <string_view>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/media/frames.h"
#include "orrery/media/mask.h"

// Clips as OpenCV sees them; internal to media/. OpenCV computes on threads of its own, with the same results
// for any number of them.
namespace orrery::media {

/// A view of one frame, RGB. The clip owns the pixels and OpenCV writes to them where the view is an output:
/// it has the output's size and type already, so nothing is allocated.
inline cv::Mat frame_view(Frames& frames, int64_t i) {
  return {static_cast<int>(frames.height), static_cast<int>(frames.width), CV_8UC3,
          frames.rgb.data() + i * frames.frame_bytes()};
}

inline cv::Mat frame_view(Mask& mask, int64_t i) {
  return {static_cast<int>(mask.height), static_cast<int>(mask.width), CV_8UC1,
          mask.levels.data() + i * mask.frame_bytes()};
}

/// A view to read from; OpenCV's matrices do not know const.
template <class Clip>
cv::Mat frame_view(const Clip& clip, int64_t i) {
  return frame_view(const_cast<Clip&>(clip), i);
}

inline Frames blank_frames(int64_t count, int64_t height, int64_t width) {
  Frames out{count, height, width, {}};
  out.rgb.resize(static_cast<size_t>(count * out.frame_bytes()));
  return out;
}

inline Mask blank_mask(int64_t count, int64_t height, int64_t width) {
  return {count, height, width, std::vector<uint8_t>(static_cast<size_t>(count * height * width))};
}

inline void require_frames(std::string_view what, int64_t count, int64_t height, int64_t width) {
  require(count > 0 && height > 0 && width > 0, what, ": expected frames, got a clip of size ", count, " × ",
          height, " × ", width);
}

}  // namespace orrery::media
