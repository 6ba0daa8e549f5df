#include "orrery/media/stretch_opencv.h"

#include <gtest/gtest.h>

#include "tests/media/clips.h"
#include "tests/media/pictures.h"
#include "tests/support/expect_error.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;
using testing::flat;
using testing::photograph;

constexpr OpencvFilter kAll[] = {OpencvFilter::kNearest, OpencvFilter::kLinear, OpencvFilter::kArea,
                                 OpencvFilter::kLanczos4};

/// One channel of every frame.
Mask channel(const Frames& frames, size_t c) {
  Mask mask{frames.count, frames.height, frames.width, {}};
  for (size_t i = c; i < frames.rgb.size(); i += 3) mask.levels.push_back(frames.rgb[i]);
  return mask;
}

TEST(StretchOpencv, EqualSizeChangesNothing) {
  const Frames clip = photograph(2, 33, 40);
  for (const auto filter : kAll) EXPECT_EQ(stretch_opencv(clip, 33, 40, filter), clip);
}

TEST(StretchOpencv, FlatColoursStayFlat) {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{5, 40}, {40, 5}, {64, 64}, {1, 1}})
    for (const auto filter : kAll)
      EXPECT_EQ(stretch_opencv(flat(1, 17, 23, 255, 0, 77), height, width, filter),
                flat(1, height, width, 255, 0, 77));
}

TEST(StretchOpencv, AreaHalvesByTheMeanOfFour) {
  const Frames clip = photograph(1, 20, 28);
  const Frames half = stretch_opencv(clip, 10, 14, OpencvFilter::kArea);
  const auto at = [](const Frames& f, int64_t y, int64_t x, int64_t c) {
    return int{f.rgb[static_cast<size_t>((y * f.width + x) * 3 + c)]};
  };
  for (int64_t y = 0; y < 10; ++y)
    for (int64_t x = 0; x < 14; ++x)
      for (int64_t c = 0; c < 3; ++c) {
        const int sum = at(clip, 2 * y, 2 * x, c) + at(clip, 2 * y, 2 * x + 1, c) +
                        at(clip, 2 * y + 1, 2 * x, c) + at(clip, 2 * y + 1, 2 * x + 1, c);
        EXPECT_EQ(at(half, y, x, c), (sum + 2) / 4);
      }
}

TEST(StretchOpencv, MasksAreTreatedAsAChannel) {
  const Frames clip = photograph(2, 45, 70);
  for (const auto filter : kAll)
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{32, 48}, {96, 112}})
      EXPECT_EQ(stretch_opencv(channel(clip, 0), height, width, filter),
                channel(stretch_opencv(clip, height, width, filter), 0));
}

TEST(StretchOpencv, FramesDoNotMix) {
  const Frames clip = photograph(3, 20, 30);
  for (const auto filter : kAll)
    for (int64_t f = 0; f < 3; ++f)
      EXPECT_EQ(slice(stretch_opencv(clip, 16, 48, filter), f, 1),
                stretch_opencv(slice(clip, f, 1), 16, 48, filter));
}

TEST(StretchOpencv, RefusesWhatHasNoPixels) {
  expect_error(ErrorKind::kRequest, "resize: expected frames, got a clip of size 0 × 0 × 0",
               [] { stretch_opencv(Frames{}, 4, 4, OpencvFilter::kArea); });
  expect_error(ErrorKind::kRequest, "resize: expected frames",
               [] { stretch_opencv(Mask{}, 4, 4, OpencvFilter::kLinear); });
  expect_error(ErrorKind::kRequest, "resize: expected a positive size, got 4 × 0",
               [] { stretch_opencv(flat(1, 4, 4, 0, 0, 0), 4, 0, OpencvFilter::kArea); });
}

}  // namespace
}  // namespace orrery::media
