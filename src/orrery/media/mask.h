#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::media {

/// Where something applies, frame by frame: levels is [count, height, width], contiguous, 255 where it does,
/// 0 where it does not, and grey in between where a resize has softened the border.
struct Mask {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> levels;

  int64_t frame_bytes() const { return height * width; }
  bool operator==(const Mask&) const = default;
};

/// A mask from a file.
/// .npz and .npy: labels, integers or booleans [frames, height, width] (or [height, width], one frame), in an
/// .npz under the name arr_0. A label of `foreground`, any but 0 if that is empty, is 255, all others 0.
/// Everything else that read_frames reads: the first channel, as it is; `foreground` must be empty.
/// Errors: request, as read.h; an array of another type, order or shape, a damaged archive, and more pixels
/// than read.h's limits, naming what was found and what is legal.
Mask read_mask(const std::string& path, std::span<const int64_t> foreground = {});

/// 255 where the mask is nearer to 255 than to 0 (> 127.5), 0 elsewhere (spec cosmos-transfer2.5 §3.1).
Mask binary(Mask mask);

}  // namespace orrery::media
