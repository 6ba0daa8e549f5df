// Printed values of spec qwen-image §2.3, §2.6, §4 and §11.2.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "orrery/nn/patchify.h"
#include "orrery/nn/rope.h"
#include "orrery/nn/timestep.h"

namespace orrery {
namespace {

constexpr nn::RopeAxes kAxes = {8, 4, 4};

/// A row of the table is these angles' cosines, then their sines.
void expect_angles(const Tensor& row, const std::vector<double>& angles) {
  const auto count = std::ssize(angles);
  ASSERT_EQ(row.size(0), 2 * count);
  for (int64_t j = 0; j < count; ++j) {
    EXPECT_NEAR(row[j].item<double>(), std::cos(angles[static_cast<size_t>(j)]), 2e-7) << j;
    EXPECT_NEAR(row[count + j].item<double>(), std::sin(angles[static_cast<size_t>(j)]), 2e-7) << j;
  }
}

TEST(PictureRope, AnglesOfTheSpecification) {
  const std::vector<nn::PictureSize> pictures = {{4, 4}, {2, 4}};
  const auto image = nn::picture_rope(kAxes, pictures), text = nn::text_rope(kAxes, pictures, 3);
  ASSERT_EQ(image.sizes(), (Shape{24, 16}));
  ASSERT_EQ(text.sizes(), (Shape{3, 16}));
  expect_angles(image[0], {0, 0, 0, 0, -2, -0.02, -2, -0.02});
  expect_angles(image[1], {0, 0, 0, 0, -2, -0.02, -1, -0.01});
  expect_angles(image[4], {0, 0, 0, 0, -1, -0.01, -2, -0.02});
  expect_angles(image[15], {0, 0, 0, 0, 1, 0.01, 1, 0.01});
  expect_angles(image[16], {1, 0.1, 0.01, 0.001, -1, -0.01, -2, -0.02});
  expect_angles(text[0], {2, 0.2, 0.02, 0.002, 2, 0.02, 2, 0.02});
  expect_angles(text[1], {3, 0.3, 0.03, 0.003, 3, 0.03, 3, 0.03});
}

// 83 is odd: positions −42 … 40, and text from 41; 58 × 104: text from 52.
TEST(PictureRope, CountsFromTheMiddle) {
  const std::vector<nn::PictureSize> square = {{83, 83}}, wide = {{58, 104}}, two = {{1, 3}, {58, 104}};
  const auto image = nn::picture_rope(kAxes, square);
  expect_angles(image[0], {0, 0, 0, 0, -42, -0.42, -42, -0.42});
  expect_angles(image[83 * 83 - 1], {0, 0, 0, 0, 40, 0.40, 40, 0.40});
  EXPECT_EQ(nn::text_rope(kAxes, square, 1)[0][4].item<float>(), std::cos(41.0f));
  EXPECT_EQ(nn::text_rope(kAxes, wide, 1)[0][4].item<float>(), std::cos(52.0f));
  EXPECT_TRUE(at::equal(nn::text_rope(kAxes, two, 5), nn::text_rope(kAxes, wide, 5)));
}

TEST(Timestep, IsScaledBehindTheFrequency) {
  const auto e = nn::timestep_embedding(at::tensor({1.0f, 0.5f}), 256, 1000);
  const double one[] = {0.562379, 0.789627, 0.439928, -0.023645},
               half[] = {-0.883849, 0.945946, 0.848507, 0.698697};
  for (int64_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(e[0][k].item<double>(), one[k], 6e-7);
    EXPECT_NEAR(e[1][k].item<double>(), half[k], 6e-7);
  }
  EXPECT_NEAR(e[0].sum().item<double>(), 50.964802, 1e-4);
  EXPECT_NEAR(e[1].sum().item<double>(), 57.546971, 1e-4);
}

TEST(Unpack, IsTheInverseOfPatchify) {
  const auto clip = at::arange(3 * 2 * 4 * 6, at::kFloat).view({3, 2, 4, 6});
  EXPECT_TRUE(at::equal(nn::unpack(nn::patchify(clip, 2), 2, 2, 2, 3), clip));
}

}  // namespace
}  // namespace orrery
