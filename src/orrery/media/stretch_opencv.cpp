#include "orrery/media/stretch_opencv.h"

#include <opencv2/imgproc.hpp>

#include "orrery/media/opencv.h"

namespace orrery::media {
namespace {

int interpolation(OpencvFilter filter) {
  switch (filter) {
    case OpencvFilter::kNearest:
      return cv::INTER_NEAREST;
    case OpencvFilter::kLinear:
      return cv::INTER_LINEAR;
    case OpencvFilter::kArea:
      return cv::INTER_AREA;
    case OpencvFilter::kLanczos4:
      break;
  }
  return cv::INTER_LANCZOS4;
}

/// Clips and masks alike; `blank` makes the output.
template <class Clip, class Blank>
Clip stretch(const Clip& clip, int64_t height, int64_t width, OpencvFilter filter, Blank blank) {
  require_frames("resize", clip.count, clip.height, clip.width);
  require(height > 0 && width > 0, "resize: expected a positive size, got ", height, " × ", width);
  Clip out = blank(clip.count, height, width);
  for (int64_t i = 0; i < clip.count; ++i) {
    cv::Mat to = frame_view(out, i);
    cv::resize(frame_view(clip, i), to, to.size(), 0, 0, interpolation(filter));
  }
  return out;
}

}  // namespace

Frames stretch_opencv(const Frames& frames, int64_t height, int64_t width, OpencvFilter filter) {
  return stretch(frames, height, width, filter, blank_frames);
}

Mask stretch_opencv(const Mask& mask, int64_t height, int64_t width, OpencvFilter filter) {
  return stretch(mask, height, width, filter, blank_mask);
}

}  // namespace orrery::media
