// Source: nvidia-cosmos/cosmos-transfer2.5 @ 2ff49d0,
// cosmos_transfer2/_src/transfer2/datasets/augmentors/control_input.py.
#include "orrery/media/edge.h"

#include <array>
#include <opencv2/imgproc.hpp>

#include "orrery/media/opencv.h"
#include "orrery/media/preset.h"

namespace orrery::media {
namespace {

constexpr std::array<EdgeThresholds, kPresets.size()> kThresholds = {
    {{20, 50}, {50, 100}, {100, 200}, {200, 300}, {300, 400}}};

}  // namespace

EdgeThresholds edge_preset(std::string_view name) {
  return kThresholds[preset_index("edge threshold", name)];
}

Frames edges(const Frames& frames, EdgeThresholds thresholds) {
  require_frames("edges", frames.count, frames.height, frames.width);
  const auto [low, high] = thresholds;
  require(0 <= low && low <= high, "edges: expected thresholds 0 ≤ low ≤ high, got ", low, " and ", high);
  constexpr int kAperture = 3;
  Frames out = blank_frames(frames.count, frames.height, frames.width);
  cv::Mat plane;
  for (int64_t i = 0; i < frames.count; ++i) {
    cv::Canny(frame_view(frames, i), plane, low, high, kAperture, /*L2gradient=*/false);
    cv::Mat to = frame_view(out, i);
    cv::cvtColor(plane, to, cv::COLOR_GRAY2RGB);
  }
  return out;
}

}  // namespace orrery::media
