#include "orrery/media/stream.h"

#include <gtest/gtest.h>

#include "tests/media/clips.h"
#include "tests/media/pictures.h"
#include "tests/support/expect_error.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;
using testing::flat;
using testing::photograph;

TEST(Stream, FiltersAreTheReferences) {
  for (const Stream s : {Stream::kInput, Stream::kVis, Stream::kGuidedMask})
    EXPECT_EQ(stream_filter(s), OpencvFilter::kArea);
  for (const Stream s : {Stream::kEdge, Stream::kDepth, Stream::kControlMask, Stream::kGuidedMaskLabels})
    EXPECT_EQ(stream_filter(s), OpencvFilter::kLinear);
  EXPECT_EQ(stream_filter(Stream::kSeg), OpencvFilter::kNearest);
}

TEST(Stream, WholeFps) {
  const auto whole = [](double fps, bool is_image = false) {
    Info info;
    info.fps = fps, info.is_image = is_image;
    return whole_fps(info);
  };
  EXPECT_EQ(whole(30000. / 1001), 29);
  EXPECT_EQ(whole(16), 16);
  EXPECT_EQ(whole(0.5), 1);
  EXPECT_EQ(whole(25, true), 1);
}

TEST(Stream, FramesAt) {
  const Frames clip = photograph(3, 4, 5);
  const int64_t indices[] = {2, 0, 0}, outside[] = {0, 3}, negative[] = {-1};
  const Frames picked = frames_at(clip, indices);
  EXPECT_EQ(picked.count, 3);
  EXPECT_EQ(slice(picked, 0, 1), slice(clip, 2, 1));
  EXPECT_EQ(slice(picked, 1, 1), slice(clip, 0, 1));
  EXPECT_EQ(slice(picked, 2, 1), slice(clip, 0, 1));
  const Mask mask{3, 1, 2, {0, 1, 2, 3, 4, 5}};
  EXPECT_EQ(frames_at(mask, indices), (Mask{3, 1, 2, {4, 5, 0, 1, 0, 1}}));
  expect_error(ErrorKind::kRequest, "frames_at: expected indices below 3, got 3",
               [&] { frames_at(clip, outside); });
  expect_error(ErrorKind::kRequest, "expected indices below 3, got -1", [&] { frames_at(mask, negative); });
}

TEST(Stream, BlackControls) {
  Frames clip = flat(2, 3, 4, 0, 0, 0);
  EXPECT_TRUE(is_black(clip));
  clip.rgb.back() = 1;
  EXPECT_FALSE(is_black(clip));
}

}  // namespace
}  // namespace orrery::media
