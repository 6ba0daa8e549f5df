#include "orrery/media/resize.h"

#include <gtest/gtest.h>

#include "tests/media/clips.h"
#include "tests/support/expect_error.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;
using testing::flat;
using testing::waves;

TEST(Resize, EqualSizeChangesNothing) {
  const Frames clip = waves(2, 11, 7);
  EXPECT_EQ(cover_crop(clip, 11, 7), clip);
  EXPECT_EQ(stretch_nearest(clip, 11, 7), clip);
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    EXPECT_EQ(stretch_pil(clip, 11, 7, filter), clip);
    EXPECT_EQ(stretch_torch(clip, 11, 7, filter), clip);
  }
}

TEST(Resize, FlatColoursStayFlat) {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{5, 40}, {40, 5}, {64, 64}, {1, 1}}) {
    const Frames expected = flat(1, height, width, 255, 0, 77);
    EXPECT_EQ(cover_crop(flat(1, 17, 23, 255, 0, 77), height, width), expected);
    for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
      EXPECT_EQ(stretch_pil(flat(1, 17, 23, 255, 0, 77), height, width, filter), expected);
      EXPECT_EQ(stretch_torch(flat(1, 17, 23, 255, 0, 77), height, width, filter), expected);
    }
  }
}

TEST(Resize, FramesDoNotMix) {
  const Frames clip = waves(3, 20, 30);
  for (int64_t f = 0; f < clip.count; ++f) {
    const Frames one = slice(clip, f, 1);
    EXPECT_EQ(slice(cover_crop(clip, 16, 16), f, 1), cover_crop(one, 16, 16));
    EXPECT_EQ(slice(stretch_pil(clip, 16, 50, Filter::kLanczos), f, 1),
              stretch_pil(one, 16, 50, Filter::kLanczos));
    EXPECT_EQ(slice(stretch_torch(clip, 7, 50, Filter::kBicubic), f, 1),
              stretch_torch(one, 7, 50, Filter::kBicubic));
    EXPECT_EQ(slice(stretch_nearest(clip, 7, 50), f, 1), stretch_nearest(one, 7, 50));
  }
}

TEST(Resize, CropMarginsRoundHalfToEven) {
  Frames column{1, 1, 7, {}};
  for (uint8_t x = 0; x < 7; ++x) column.rgb.insert(column.rgb.end(), {x, x, x});
  EXPECT_EQ(cover_crop(column, 1, 6).rgb.front(), 0);  // margin 0.5 → 0
  EXPECT_EQ(cover_crop(column, 1, 4).rgb.front(), 2);  // margin 1.5 → 2
}

TEST(Resize, EnlargeNearestAndBack) {
  const Frames clip = waves(2, 5, 4), large = enlarge_nearest(clip, 3);
  EXPECT_EQ(large.height, 15);
  EXPECT_EQ(large.width, 12);
  EXPECT_EQ(stretch_nearest(large, 5, 4), clip);
  EXPECT_EQ(large.rgb[0], large.rgb[static_cast<size_t>((2 * 12 + 2) * 3)]);
}

TEST(Resize, ContactSheetHasARowPerClip) {
  const Frames clips[] = {waves(3, 4, 6), flat(3, 4, 6, 1, 2, 3)};
  const int64_t indices[] = {2, 0};
  const Frames sheet = contact_sheet(clips, indices, 2);
  EXPECT_EQ(sheet.count, 1);
  EXPECT_EQ(sheet.height, 16);
  EXPECT_EQ(sheet.width, 24);
  const auto pixel = [&](int64_t y, int64_t x) { return sheet.rgb[static_cast<size_t>((y * 24 + x) * 3)]; };
  EXPECT_EQ(pixel(0, 0), slice(clips[0], 2, 1).rgb[0]);
  EXPECT_EQ(pixel(1, 12), clips[0].rgb[0]);
  EXPECT_EQ(pixel(8, 0), 1);
}

TEST(Resize, RefusesWhatHasNoPixels) {
  const Frames clip = waves(1, 4, 4);
  expect_error(ErrorKind::kRequest, "expected frames", [] { cover_crop({}, 4, 4); });
  expect_error(ErrorKind::kRequest, "positive size, got 0 × 4", [&] { stretch_nearest(clip, 0, 4); });
  expect_error(ErrorKind::kRequest, "positive size", [&] { stretch_pil(clip, 4, -1, Filter::kBicubic); });
  expect_error(ErrorKind::kRequest, "positive size", [&] { stretch_torch(clip, 0, 4, Filter::kBicubic); });
  expect_error(ErrorKind::kRequest, "positive size", [&] { enlarge_nearest(clip, 0); });
  const Frames clips[] = {clip, waves(1, 4, 5)};
  const int64_t zero[] = {0}, one[] = {1};
  expect_error(ErrorKind::kRequest, "clips of one size", [&] { contact_sheet(clips, zero, 1); });
  expect_error(ErrorKind::kRequest, "below 1, got 1", [&] { contact_sheet({clips, 1}, one, 1); });
  expect_error(ErrorKind::kRequest, "expected clips", [&] { contact_sheet({}, zero, 1); });
}

}  // namespace
}  // namespace orrery::media
