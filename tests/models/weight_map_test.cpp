#include "orrery/models/cosmos_transfer/weight_map.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/upsample_trilinear3d.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <random>

#include "orrery/base/error.h"
#include "tests/support/expect_error.h"

namespace orrery::cosmos_transfer {
namespace {

using media::Mask;
using orrery::testing::expect_error;

Mask noise(int64_t count, int64_t height, int64_t width, bool only_two_levels, unsigned seed = 5) {
  std::mt19937 generator(seed);
  Mask mask{count, height, width, {}};
  for (int64_t i = 0; i < count * height * width; ++i) {
    const auto level = static_cast<uint8_t>(generator() >> 24);
    mask.levels.push_back(only_two_levels ? (level < 128 ? 0 : 255) : level);
  }
  return mask;
}

Mask everywhere(int64_t count, int64_t height, int64_t width) {
  return {count, height, width, std::vector<uint8_t>(static_cast<size_t>(count * height * width), 255)};
}

/// The reference's way: trilinear interpolation of the first frame, then of the others.
Tensor interpolated(const Tensor& map, int64_t frames, int64_t rows, int64_t columns) {
  const auto shrink = [&](const Tensor& x, int64_t count) {
    return at::upsample_trilinear3d(x.unsqueeze(0).unsqueeze(0), {count, rows, columns},
                                    /*align_corners=*/false)[0][0];
  };
  const auto first = shrink(map.narrow(0, 0, 1), 1);
  return frames == 1 ? first : at::cat({first, shrink(map.narrow(0, 1, map.size(0) - 1), frames - 1)});
}

Tensor levels(const Mask& mask) {
  return at::from_blob(const_cast<uint8_t*>(mask.levels.data()), {mask.count, mask.height, mask.width},
                       at::kByte)
             .to(at::kFloat) /
         255;
}

double worst(const Tensor& a, const Tensor& b) {
  return (a.to(at::kFloat) - b.to(at::kFloat)).abs().max().item<double>();
}

TEST(WeightMap, ReducesAsTrilinearInterpolationDoes) {
  for (const int64_t frames : {1, 2, 4})
    for (const int64_t side : {8, 16}) {
      const Mask soft = noise(4 * (frames - 1) + 1, 3 * side, 5 * side, false);
      const Tensor reduced = reduce_mask(soft, side);
      EXPECT_EQ(reduced.sizes(), (Shape{frames, 3, 5}));
      EXPECT_LE(worst(reduced, interpolated(levels(soft), frames, 3, 5)), 1e-6);
    }
}

TEST(WeightMap, OnlyCentresCount) {
  Mask mask = everywhere(9, 16, 32);
  std::fill(mask.levels.begin(), mask.levels.end(), 0);
  const auto set = [&](int64_t f, int64_t y, int64_t x) {
    mask.levels[static_cast<size_t>((f * 16 + y) * 32 + x)] = 255;
  };
  set(0, 7, 8);   // a quarter of the first frame's first token
  set(6, 8, 23);  // frames 6 and 7 are the middle of the second group: an eighth of its second token
  set(5, 7, 7);   // not in the middle
  set(6, 9, 7);   // nor this
  const Tensor reduced = reduce_mask(mask, 16);
  Tensor expected = at::zeros({3, 1, 2});
  expected[0][0][0] = 0.25, expected[2][0][1] = 0.125;
  EXPECT_TRUE(at::equal(reduced, expected)) << reduced;
}

TEST(WeightMap, WithoutMasksThereIsNone) {
  const Mask all = everywhere(5, 32, 32);
  const ControlStrength controls[] = {{1.0, nullptr}, {1.0, &all}};
  EXPECT_TRUE(weight_maps(controls, at::kFloat).empty());
  EXPECT_TRUE(weight_maps({}, at::kFloat).empty());
}

TEST(WeightMap, OneMaskGivesEveryControlAMapAndCapsTheSum) {
  const Mask mask = noise(9, 48, 64, true);
  const ControlStrength controls[] = {{0.5, nullptr}, {0.9, &mask}, {0.0, nullptr}};
  const auto maps = weight_maps(controls, at::kFloat);
  ASSERT_EQ(maps.size(), 3u);
  const Tensor where = reduce_mask(mask, 16), total = 0.5 + 0.9 * where;
  const Tensor cap = at::ones_like(total) / total.clamp_min(1);
  EXPECT_LE(worst(maps[0], 0.5 * cap), 1e-6);
  EXPECT_LE(worst(maps[1], 0.9 * where * cap), 1e-6);
  EXPECT_EQ(maps[2].abs().max().item<float>(), 0);
  EXPECT_GT(total.max().item<float>(), 1);
  EXPECT_LT(total.min().item<float>(), 1);
}

TEST(WeightMap, ASingleControlIsNotCapped) {
  const Mask mask = noise(5, 32, 48, true);
  const ControlStrength control[] = {{0.7, &mask}};
  const auto maps = weight_maps(control, at::kFloat);
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_LE(worst(maps[0], 0.7 * reduce_mask(mask, 16)), 1e-7);
}

TEST(WeightMap, RoundsAsTheReferenceDoesInBfloat16) {
  const Mask masks[] = {noise(9, 48, 64, true, 1), noise(9, 48, 64, true, 2)};
  const double weights[] = {0.9, 0.45, 0.3};
  const ControlStrength controls[] = {
      {weights[0], &masks[0]}, {weights[1], &masks[1]}, {weights[2], nullptr}};
  const auto maps = weight_maps(controls, at::kBFloat16);
  std::vector<Tensor> expected;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor mask = i < 2 ? levels(masks[i]) : at::ones({9, 48, 64});
    // A bfloat16 interpolation rounds once, at the end.
    const Tensor weighted = (mask.to(at::kBFloat16) * weights[i]).to(at::kFloat);
    expected.push_back(interpolated(weighted, 3, 3, 4).to(at::kBFloat16));
  }
  const Tensor stacked = at::stack(expected);
  const Tensor capped = stacked * (1 / stacked.sum(0).clamp_min(1)).unsqueeze(0);
  ASSERT_EQ(maps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(maps[i].scalar_type(), at::kBFloat16);
    EXPECT_TRUE(at::equal(maps[i], capped[static_cast<int64_t>(i)])) << i;
  }
}

TEST(WeightMap, Refusals) {
  expect_error(
      ErrorKind::kRequest,
      "expected a mask of 4k + 1 frames with sides that are multiples of 16, got 4 frames of 32 × 16",
      [] { reduce_mask(everywhere(4, 16, 32), 16); });
  expect_error(ErrorKind::kRequest, "multiples of 8, got 1 frames of 12 × 8",
               [] { reduce_mask(everywhere(1, 8, 12), 8); });
  expect_error(ErrorKind::kRequest, "got 0 frames of 0 × 0", [] { reduce_mask({}, 16); });
  const Mask a = noise(5, 16, 32, true), b = noise(5, 32, 16, true);
  const ControlStrength controls[] = {{1, &a}, {1, &b}};
  expect_error(ErrorKind::kRequest,
               "expected masks of one size, got 5 frames of 32 × 16 and 5 frames of 16 × 32",
               [&] { weight_maps(controls, at::kFloat); });
}

}  // namespace
}  // namespace orrery::cosmos_transfer
