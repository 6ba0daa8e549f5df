#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>

#include <cstring>
#include <string_view>

#include "orrery/base/error.h"
#include "orrery/media/resize.h"
#include "tests/media/golden_pictures.h"
#include "tests/support/golden.h"

namespace orrery::media {
namespace {

using testing::Json;
using testing::picture;
using testing::tensor;
using testing::Tensors;

/// What diffusers makes of a picture: [3, H, W] in −1 … 1.
Tensor normalised(const Frames& frames) {
  return tensor(frames).permute({2, 0, 1}).to(at::kFloat) / 255 * 2 - 1;
}

/// Calls check(name, case's tensor by name) for each case whose name starts so; at least one must exist.
template <class Check>
void for_cases(std::string_view prefix, Check check) {
  int found = 0;
  for (const auto& folder : testing::golden_folders("images")) {
    const Json description = testing::read_json(folder / "case.json");
    const Tensors tensors = testing::read_tensors(folder / "golden.safetensors");
    for (const Json& entry : description["cases"]) {
      const auto name = entry["name"].get<std::string>();
      if (!name.starts_with(prefix)) continue;
      SCOPED_TRACE(folder.string() + " " + name);
      ++found;
      check([&](const std::string& key) {
        const auto at = tensors.find(name + "/" + key);
        return at == tensors.end() ? Tensor() : at->second;
      });
    }
  }
  EXPECT_GT(found, 0);
}

TEST(ResizeGolden, CoverCrop) {
  for_cases("cover_", [](auto value) {
    const Tensor expected = value("output");
    EXPECT_EQ(testing::max_abs(
                  tensor(cover_crop(picture(value("input")), expected.size(0), expected.size(1))), expected),
              0);
  });
}

TEST(ResizeGolden, Stretch) {
  for_cases("stretch_", [](auto value) {
    const Frames input = picture(value("input"));
    const Tensor nearest = value("tensor_path"), pil = value("pil_path");
    EXPECT_LE(testing::max_abs(normalised(stretch_nearest(input, nearest.size(1), nearest.size(2))), nearest),
              1e-6);
    EXPECT_LE(
        testing::max_abs(normalised(stretch_pil(input, pil.size(1), pil.size(2), Filter::kBilinear)), pil),
        1e-6);
  });
}

/// Where Pillow 13 swaps the passes, the golden has the older order beside it.
void expect_pil(const Frames& input, Filter filter, const Tensor& output, const Tensor& horizontal_first) {
  const Tensor& expected = horizontal_first.defined() ? horizontal_first : output;
  EXPECT_EQ(
      testing::max_abs(tensor(stretch_pil(input, expected.size(0), expected.size(1), filter)), expected), 0);
}

TEST(ResizeGolden, Lanczos) {
  for_cases("lanczos_", [](auto value) {
    expect_pil(picture(value("input")), Filter::kLanczos, value("output"), value("output_horizontal_first"));
  });
}

TEST(ResizeGolden, Bicubic) {
  for_cases("bicubic_", [](auto value) {
    const Frames input = picture(value("input"));
    expect_pil(input, Filter::kBicubic, value("output_pil"), value("output_horizontal_first"));
    const Tensor torchvision = value("output_torchvision");
    EXPECT_EQ(testing::max_abs(
                  tensor(stretch_torch(input, torchvision.size(0), torchvision.size(1), Filter::kBicubic)),
                  torchvision),
              0);
  });
}

/// The linked torch is the reference itself.
TEST(ResizeGolden, TorchsOwnBicubic) {
  const int64_t sizes[][4] = {
      {97, 131, 28, 56}, {3, 5, 28, 28}, {211, 30, 56, 84}, {64, 300, 63, 20}, {40, 40, 40, 9}};
  for (const auto& [height, width, rows, columns] : sizes) {
    SCOPED_TRACE(concat(height, " x ", width, " to ", rows, " x ", columns));
    const Tensor input = at::randint(256, {height, width, 3}, at::kByte);
    const Tensor expected = at::_upsample_bicubic2d_aa(input.permute({2, 0, 1}).unsqueeze(0), {rows, columns},
                                                       /*align_corners=*/false);
    EXPECT_EQ(testing::max_abs(tensor(stretch_torch(picture(input), rows, columns, Filter::kBicubic)),
                               expected[0].permute({1, 2, 0})),
              0);
  }
}

}  // namespace
}  // namespace orrery::media
