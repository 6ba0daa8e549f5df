// Source: nvidia-cosmos/cosmos-transfer2.5 @ 2ff49d0, cosmos_transfer2/_src/transfer2/inference/utils.py and
// inference_pipeline.py.
#include "orrery/media/stream.h"

#include <algorithm>
#include <vector>

#include "orrery/base/error.h"

namespace orrery::media {
namespace {

void append_frames(const std::vector<uint8_t>& from, int64_t frame_bytes, int64_t count,
                   std::span<const int64_t> indices, std::vector<uint8_t>& to) {
  to.reserve(indices.size() * static_cast<size_t>(frame_bytes));
  for (const int64_t i : indices) {
    require(0 <= i && i < count, "frames_at: expected indices below ", count, ", got ", i);
    const auto begin = from.begin() + i * frame_bytes;
    to.insert(to.end(), begin, begin + frame_bytes);
  }
}

}  // namespace

OpencvFilter stream_filter(Stream stream) {
  switch (stream) {
    case Stream::kInput:
    case Stream::kVis:
    case Stream::kGuidedMask:
      return OpencvFilter::kArea;
    case Stream::kSeg:
      return OpencvFilter::kNearest;
    case Stream::kEdge:
    case Stream::kDepth:
    case Stream::kControlMask:
    case Stream::kGuidedMaskLabels:
      break;
  }
  return OpencvFilter::kLinear;
}

int64_t whole_fps(const Info& input) {
  return input.is_image ? 1 : std::max(static_cast<int64_t>(input.fps), int64_t{1});
}

Frames slice(const Frames& frames, int64_t begin, int64_t count) {
  ensure(0 <= begin && 0 <= count && begin + count <= frames.count, "slice: frames ", begin, " to ",
         begin + count, " of ", frames.count);
  const auto first = frames.rgb.begin() + begin * frames.frame_bytes();
  return {count, frames.height, frames.width, {first, first + count * frames.frame_bytes()}};
}

Frames frames_at(const Frames& frames, std::span<const int64_t> indices) {
  Frames out{static_cast<int64_t>(indices.size()), frames.height, frames.width, {}};
  append_frames(frames.rgb, frames.frame_bytes(), frames.count, indices, out.rgb);
  return out;
}

Mask frames_at(const Mask& mask, std::span<const int64_t> indices) {
  Mask out{static_cast<int64_t>(indices.size()), mask.height, mask.width, {}};
  append_frames(mask.levels, mask.frame_bytes(), mask.count, indices, out.levels);
  return out;
}

bool is_black(const Frames& frames) {
  return std::ranges::all_of(frames.rgb, [](uint8_t level) { return level == 0; });
}

}  // namespace orrery::media
