// Source: nvidia-cosmos/cosmos-transfer2.5 @ 2ff49d0,
// cosmos_transfer2/_src/transfer2/datasets/augmentors/control_input.py.
#include "orrery/media/blur.h"

#include <algorithm>
#include <array>
#include <opencv2/imgproc.hpp>

#include "orrery/media/opencv.h"
#include "orrery/media/preset.h"
#include "orrery/media/stretch_bicubic.h"
#include "orrery/media/stretch_opencv.h"

namespace orrery::media {
namespace {

constexpr std::array<BlurStrength, kPresets.size()> kStrengths = {
    {{1, 4}, {4, 4}, {2, 10}, {1, 16}, {4, 16}}};

constexpr int kDiameter = 30;  // OpenCV's window has radius 30 / 2 and so 31 pixels
constexpr double kSigmaColour = 150, kSigmaSpace = 100;

Frames bilateral(const Frames& frames) {
  Frames out = blank_frames(frames.count, frames.height, frames.width);
  for (int64_t i = 0; i < frames.count; ++i) {
    cv::Mat to = frame_view(out, i);
    cv::bilateralFilter(frame_view(frames, i), to, kDiameter, kSigmaColour, kSigmaSpace);
  }
  return out;
}

}  // namespace

BlurStrength blur_preset(std::string_view name) { return kStrengths[preset_index("blur strength", name)]; }

Frames blur(const Frames& frames, BlurStrength strength) {
  require_frames("blur", frames.count, frames.height, frames.width);
  const auto [shrink, resolution] = strength;
  require(shrink >= 1 && resolution >= 1, "blur: expected factors of at least 1, got ", shrink, " and ",
          resolution);
  const int64_t height = frames.height, width = frames.width, factor = std::max(shrink, resolution);
  require(std::min(height, width) >= factor, "blur: expected frames of at least ", factor, " × ", factor,
          " pixels, got ", height, " × ", width);
  const Frames smooth =
      shrink == 1
          ? bilateral(frames)
          : stretch_opencv(
                bilateral(stretch_opencv(frames, height / shrink, width / shrink, OpencvFilter::kArea)),
                height, width, OpencvFilter::kLinear);
  return stretch_bicubic(stretch_bicubic(smooth, height / resolution, width / resolution), height, width);
}

}  // namespace orrery::media
