#include "orrery/comm/split.h"

#include <algorithm>

#include "orrery/base/error.h"

namespace orrery::comm {

Range split(int64_t total, int64_t parts, int64_t index) {
  ensure(total >= 0 && parts >= 1 && index >= 0 && index < parts, "split: no part ", index, " of ", total,
         " items in ", parts, " parts");
  const int64_t least = total / parts, longer = total % parts;
  const auto begin = [&](int64_t i) { return i * least + std::min(i, longer); };
  return {begin(index), begin(index + 1)};
}

std::vector<int64_t> split_sizes(int64_t total, int64_t parts) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(split(total, parts, i).size());
  return sizes;
}

}  // namespace orrery::comm
