#include "orrery/models/qwen_vl/image.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::qwen_vl {
namespace {

using testing::expect_error;
using Json = nlohmann::json;

ImageConfig published() {
  ImageConfig c;
  c.min_pixels = 3136;
  c.max_pixels = 12845056;
  return c;
}

/// Spec qwen2.5-vl-text §7.4, and transformers' smart_resize on sizes where each of its branches acts.
TEST(QwenVlImage, FittedSize) {
  const std::pair<Size, Size> cases[] = {{{1024, 1024}, {1036, 1036}}, {{768, 1376}, {756, 1372}},
                                         {{384, 384}, {392, 392}},     {{288, 512}, {280, 504}},
                                         {{30, 41}, {56, 84}},         {{5000, 4000}, {4004, 3192}},
                                         {{14, 14}, {56, 56}},         {{42, 70}, {56, 56}},
                                         {{98, 2000}, {112, 1988}},    {{1, 200}, {28, 812}}};
  for (const auto& [size, expected] : cases) {
    SCOPED_TRACE(concat(size.height, " x ", size.width));
    EXPECT_EQ(fitted_size(published(), size.height, size.width), expected);
  }
  // The class default of max_pixels, where a file says nothing.
  EXPECT_EQ(fitted_size({}, 1024, 1024), (Size{980, 980}));
  // A side is never nothing, at the cost of the area.
  ImageConfig few = published();
  few.min_pixels = 1, few.max_pixels = 28 * 28 * 2;
  EXPECT_EQ(fitted_size(few, 20, 2000), (Size{28, 392}));
}

TEST(QwenVlImage, RefusesWhatHasNoShape) {
  expect_error(ErrorKind::kRequest, "201 × 1 pixels", [] { fitted_size(published(), 1, 201); });
  expect_error(ErrorKind::kRequest, "empty", [] { fitted_size(published(), 0, 4); });
  expect_error(ErrorKind::kRequest, "one frame, not 2", [] {
    patches_of(published(), {2, 28, 28, std::vector<uint8_t>(2 * 28 * 28 * 3)});
  });
}

/// Where every pixel of the picture comes to lie, and its value; no resize at this size.
TEST(QwenVlImage, OrderOfPatchesAndFeatures) {
  ImageConfig c = published();
  c.patch_size = 3, c.min_pixels = 1;
  media::Frames image{1, 12, 18, {}};
  for (int i = 0; i < 12 * 18 * 3; ++i) image.rgb.push_back(static_cast<uint8_t>(i * 37 % 256));
  const ImagePatches patches = patches_of(c, image);
  EXPECT_EQ(patches.grid, (Grid{4, 6}));
  ASSERT_EQ(patches.values.sizes(), at::IntArrayRef({24, 3 * 2 * 9}));
  const auto* values = patches.values.const_data_ptr<float>();
  for (int64_t y = 0; y < 12; ++y)
    for (int64_t x = 0; x < 18; ++x)
      for (int64_t channel = 0; channel < 3; ++channel) {
        const int64_t row = y / 3, column = x / 3;
        const int64_t patch = (row / 2 * 3 + column / 2) * 4 + row % 2 * 2 + column % 2;
        const double level = image.rgb[static_cast<size_t>((y * 18 + x) * 3 + channel)] / 255.0;
        const auto i = static_cast<size_t>(channel);
        for (int64_t frame = 0; frame < 2; ++frame)
          ASSERT_NEAR(values[patch * 54 + (channel * 2 + frame) * 9 + y % 3 * 3 + x % 3],
                      (level - c.mean[i]) / c.deviation[i], 1e-6);
      }
}

class QwenVlImageConfig : public ::testing::Test {
 protected:
  ImageConfig read(const Json& json) {
    std::ofstream(folder_ / "preprocessor_config.json") << json.dump();
    return read_image_config(folder_ / "preprocessor_config.json");
  }

  testing::TempDir folder_;
};

TEST_F(QwenVlImageConfig, BothSpellingsOfTheLimits) {
  const ImageConfig nothing = read(Json::object());
  EXPECT_EQ(nothing.min_pixels, 3136);
  EXPECT_EQ(nothing.max_pixels, 1003520);
  const Json size = {{"shortest_edge", 100}, {"longest_edge", 5000}};
  const ImageConfig sides = read({{"size", size}});
  EXPECT_EQ(sides.min_pixels, 100);
  EXPECT_EQ(sides.max_pixels, 5000);
  const ImageConfig both = read({{"size", size}, {"max_pixels", 4000}, {"min_pixels", nullptr}});
  EXPECT_EQ(both.min_pixels, 100);
  EXPECT_EQ(both.max_pixels, 4000);
  EXPECT_EQ(read({{"image_std", {0.5, 0.25, 1}}}).deviation, (std::array<double, 3>{0.5, 0.25, 1}));
}

TEST_F(QwenVlImageConfig, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, Json> wrong[] = {
      {"patch_size", 0},    {"patch_size", 1000},    {"merge_size", "2"},   {"max_pixels", -1},
      {"min_pixels", 0},    {"min_pixels", 2000000}, {"image_mean", {0.5}}, {"image_std", {0.5, 0, 0.5}},
      {"rescale_factor", 0}};
  for (const auto& [name, value] : wrong)
    expect_error(ErrorKind::kCheckpoint, name, [&] { read({{name, value}}); });
}

TEST_F(QwenVlImageConfig, NamesWhatIsNotSupported) {
  const std::pair<const char*, Json> unsupported[] = {
      {"do_resize", false}, {"do_rescale", false}, {"do_normalize", false}, {"resample", 2}};
  for (const auto& [name, value] : unsupported)
    expect_error(ErrorKind::kUnsupported, name, [&] { read({{name, value}}); });
}

}  // namespace
}  // namespace orrery::qwen_vl
