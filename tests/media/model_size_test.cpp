#include "orrery/media/model_size.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;

TEST(ModelSize, NearestAspect) {
  EXPECT_EQ(model_size("720", 1080, 1920), (Size{704, 1280}));
  EXPECT_EQ(model_size("720", 480, 640), (Size{704, 960}));
  EXPECT_EQ(model_size("720", 10, 10), (Size{960, 960}));
  EXPECT_EQ(model_size("720", 640, 480), (Size{960, 704}));
  EXPECT_EQ(model_size("720", 1920, 1080), (Size{1280, 704}));
  EXPECT_EQ(model_size("480p", 704, 1280), (Size{480, 832}));
  EXPECT_EQ(model_size("720", 1, 1000), (Size{704, 1280}));
  EXPECT_EQ(model_size("720", 1000, 1), (Size{1280, 704}));
  // Halfway between 16:9 and 4:3 is 14:9.
  EXPECT_EQ(model_size("256", 900, 1401), (Size{192, 320}));
  EXPECT_EQ(model_size("256", 900, 1399), (Size{256, 320}));
}

TEST(ModelSize, SidesAreWholeTokensAndTurnWithTheClip) {
  for (const char* name : {"720", "480", "480p", "720p", "720robocasa", "512", "256", "1024", "1080"})
    for (const auto& [w, h] : {std::pair<int64_t, int64_t>{16, 9}, {4, 3}, {1, 1}}) {
      const Size size = model_size(name, h, w), turned = model_size(name, w, h);
      EXPECT_EQ(size, (Size{turned.width, turned.height})) << name;
      EXPECT_EQ(size.height % 16, 0) << name;
      EXPECT_EQ(size.width % 16, 0) << name;
    }
}

TEST(ModelSize, Refusals) {
  expect_error(
      ErrorKind::kRequest,
      "expected the resolution to be one of 720, 480, 480p, 720p, 720robocasa, 512, 256, 1024, 1080; "
      "found \"704\"",
      [] { model_size("704", 9, 16); });
  expect_error(ErrorKind::kRequest, "expected a clip with pixels, got 0 × 16",
               [] { model_size("720", 0, 16); });
  EXPECT_NO_THROW(require_model_size("the control depth", "720", 450, 800, {704, 1280}));
  expect_error(ErrorKind::kRequest,
               "the control depth is 640 × 480, which resolution 720 stretches to 960 × 704; expected the "
               "input's aspect, which gives 1280 × 704",
               [] {
                 require_model_size("the control depth", "720", 480, 640, {704, 1280});
               });
}

}  // namespace
}  // namespace orrery::media
