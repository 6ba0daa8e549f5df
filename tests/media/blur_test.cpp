#include "orrery/media/blur.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include <cmath>

#include "orrery/media/preset.h"
#include "orrery/media/stretch_bicubic.h"
#include "orrery/media/stretch_opencv.h"
#include "tests/media/clips.h"
#include "tests/media/pictures.h"
#include "tests/support/expect_error.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;
using testing::flat;
using testing::max_levels;
using testing::photograph;

/// The bilateral filter's definition (spec cosmos-transfer2.5 §3.3), in float64.
Frames bilateral(const Frames& in) {
  constexpr int64_t kRadius = 15;
  const auto reflect = [](int64_t i, int64_t n) {
    while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
    return i;
  };
  const auto pixel = [&](int64_t y, int64_t x) {
    return in.rgb.data() + (reflect(y, in.height) * in.width + reflect(x, in.width)) * 3;
  };
  Frames out{1, in.height, in.width, {}};
  for (int64_t y = 0; y < in.height; ++y)
    for (int64_t x = 0; x < in.width; ++x) {
      const uint8_t* here = pixel(y, x);
      double sum[3] = {}, total = 0;
      for (int64_t i = -kRadius; i <= kRadius; ++i)
        for (int64_t j = -kRadius; j <= kRadius; ++j) {
          const auto squared = static_cast<double>(i * i + j * j);
          if (squared > kRadius * kRadius) continue;
          const uint8_t* there = pixel(y + i, x + j);
          double colour = 0;
          for (int c = 0; c < 3; ++c) colour += std::abs(int{here[c]} - int{there[c]});
          const double weight = std::exp(-squared / (2 * 100. * 100) - colour * colour / (2 * 150. * 150));
          for (int c = 0; c < 3; ++c) sum[c] += weight * there[c];
          total += weight;
        }
      for (const double s : sum) out.rgb.push_back(static_cast<uint8_t>(std::nearbyint(s / total)));
    }
  return out;
}

/// torchvision's resize of 8-bit tensors, by the linked torch.
Frames torchvision(const Frames& in, int64_t height, int64_t width) {
  const auto pixels =
      at::from_blob(const_cast<uint8_t*>(in.rgb.data()), {1, in.height, in.width, 3}, at::kByte)
          .permute({0, 3, 1, 2})
          .to(at::kFloat);
  const auto resized = at::_upsample_bicubic2d_aa(pixels, {height, width}, /*align_corners=*/false)
                           .clamp(0, 255)
                           .round()
                           .to(at::kByte)
                           .permute({0, 2, 3, 1})
                           .contiguous();
  const auto* data = resized.const_data_ptr<uint8_t>();
  return {1, height, width, {data, data + resized.numel()}};
}

TEST(Blur, StretchBicubicIsTorchvisions) {
  const std::pair<int64_t, int64_t> sizes[] = {{19, 25},   {97, 131}, {7, 300},  {160, 40}, {1, 1},
                                               {120, 131}, {9, 49},   {11, 135}, {34, 100}, {108, 31}};
  const Frames picture = photograph(1, 97, 131, 40);
  for (const auto& [height, width] : sizes)  // to the bit where torch has AVX2 kernels
    EXPECT_EQ(stretch_bicubic(picture, height, width), torchvision(picture, height, width))
        << height << " × " << width;
}

TEST(Blur, IsWhatTheStepsSay) {
  const Frames picture = photograph(1, 70, 92);
  for (const auto preset : kPresets) {
    const auto [shrink, resolution] = blur_preset(preset);
    Frames expected = picture;
    if (shrink > 1) expected = stretch_opencv(expected, 70 / shrink, 92 / shrink, OpencvFilter::kArea);
    expected = bilateral(expected);
    if (shrink > 1) expected = stretch_opencv(expected, 70, 92, OpencvFilter::kLinear);
    expected = torchvision(torchvision(expected, 70 / resolution, 92 / resolution), 70, 92);
    EXPECT_LE(max_levels(blur(picture, {shrink, resolution}), expected), 1) << preset;
  }
}

TEST(Blur, PresetsByName) {
  const BlurStrength expected[] = {{1, 4}, {4, 4}, {2, 10}, {1, 16}, {4, 16}};
  for (size_t i = 0; i < kPresets.size(); ++i) EXPECT_EQ(blur_preset(kPresets[i]), expected[i]);
  EXPECT_EQ(BlurStrength{}, blur_preset("medium"));
}

TEST(Blur, FramesDoNotMix) {
  const Frames clip = photograph(3, 40, 56);
  const Frames all = blur(clip, {});
  EXPECT_NE(slice(all, 0, 1), slice(all, 2, 1));
  for (int64_t f = 0; f < 3; ++f) EXPECT_EQ(slice(all, f, 1), blur(slice(clip, f, 1), {}));
}

TEST(Blur, FlatPicturesStayFlat) {
  const Frames picture = flat(1, 33, 47, 250, 3, 77);
  for (const auto preset : kPresets) EXPECT_EQ(blur(picture, blur_preset(preset)), picture) << preset;
}

TEST(Blur, Refusals) {
  expect_error(
      ErrorKind::kRequest,
      "expected the preset of the blur strength to be one of very_low, low, medium, high, very_high; "
      "found \"strong\"",
      [] { blur_preset("strong"); });
  expect_error(ErrorKind::kRequest, "blur: expected frames, got a clip of size 0 × 0 × 0",
               [] { blur({}, {}); });
  expect_error(ErrorKind::kRequest, "factors of at least 1, got 0 and 4", [] {
    blur(flat(1, 40, 40, 0, 0, 0), {0, 4});
  });
  expect_error(ErrorKind::kRequest, "frames of at least 16 × 16 pixels, got 15 × 64", [] {
    blur(flat(1, 15, 64, 0, 0, 0), {1, 16});
  });
  expect_error(ErrorKind::kRequest, "resize: expected a positive size, got 0 × 4",
               [] { stretch_bicubic(flat(1, 4, 4, 0, 0, 0), 0, 4); });
  expect_error(ErrorKind::kRequest, "resize: expected frames", [] { stretch_bicubic({}, 4, 4); });
}

}  // namespace
}  // namespace orrery::media
