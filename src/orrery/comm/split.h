#pragma once
#include <cstdint>
#include <vector>

namespace orrery::comm {

/// [begin, end) of something counted.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Part `index` of `total` items cut into `parts` contiguous parts, in order. The first total % parts parts
/// hold one item more than the others; with more parts than items the last ones are empty.
Range split(int64_t total, int64_t parts, int64_t index);

/// The sizes of all parts.
std::vector<int64_t> split_sizes(int64_t total, int64_t parts);

}  // namespace orrery::comm
