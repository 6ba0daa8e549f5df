#include "orrery/sample/chunk_seed.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/expect_error.h"

namespace orrery::sample {
namespace {

std::vector<int64_t> chain(int64_t seed, size_t length) {
  std::vector<int64_t> seeds;
  while (seeds.size() < length) seeds.push_back(seed = next_chunk_seed(seed));
  return seeds;
}

// Python 3's own numbers (spec cosmos-transfer2.5 §4.3, and python3 -c for the largest).
TEST(ChunkSeed, IsPythons) {
  using Seeds = std::vector<int64_t>;
  EXPECT_EQ(chain(2025, 6), (Seeds{584845, 643774, 159167, 85372, 123237, 848593}));
  EXPECT_EQ(chain(0, 3), (Seeds{885440, 702387, 76322}));
  EXPECT_EQ(chain(1, 3), (Seeds{140891, 768541, 391242}));
  EXPECT_EQ(chain(42, 3), (Seeds{670487, 643060, 352269}));
  EXPECT_EQ(chain(4294967295, 2), (Seeds{666220, 747588}));
}

TEST(ChunkSeed, RefusesWhatNumpyRefuses) {
  for (const int64_t seed : {int64_t{-1}, int64_t{1} << 32})
    testing::expect_error(ErrorKind::kRequest, "expected a seed from 0 to 4294967295",
                          [&] { next_chunk_seed(seed); });
}

}  // namespace
}  // namespace orrery::sample
