#pragma once
#include <cstdint>
#include <vector>

namespace orrery::media {

/// A clip of RGB frames, 8 bits each: rgb is [count, height, width, 3], contiguous.
struct Frames {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> rgb;

  int64_t frame_bytes() const { return height * width * 3; }
  bool operator==(const Frames&) const = default;
};

}  // namespace orrery::media
