// Printed values of spec cosmos-predict2.5 §2.4 and §2.5, and the two patch orders of §2.2.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "orrery/nn/patchify.h"
#include "orrery/nn/rope.h"
#include "orrery/nn/timestep.h"

namespace orrery {
namespace {

TEST(Rope, FrequenciesOfTheSpecification) {
  struct Row {
    int64_t j;
    double time, time_bf16, height, height_bf16;
  };
  const Row rows[] = {{0, 1, 1, 1, 1},
                      {1, 0.65793324, 0.65820223, 0.61047477, 0.61054838},
                      {3, 0.28480357, 0.28387359, 0.22751142, 0.22817031},
                      {6, 0.08111308, 0.08058421, 0.05176145, 0.05206168},
                      {11, 0.01, 0.01, 0.00438879, 0.00440575},
                      {20, 0.00023101, 0.00022876, 5.168e-05, 5.129e-05}};
  const auto time = nn::rope_frequencies(44, 1, false), time_bf16 = nn::rope_frequencies(44, 1, true);
  const auto height = nn::rope_frequencies(42, 3, false), height_bf16 = nn::rope_frequencies(42, 3, true);
  for (const auto& row : rows) {
    EXPECT_NEAR(time[row.j].item<double>(), row.time, 6e-9 + 1e-7 * row.time);
    EXPECT_NEAR(time_bf16[row.j].item<double>(), row.time_bf16, 6e-9 + 1e-7 * row.time_bf16);
    EXPECT_NEAR(height[row.j].item<double>(), row.height, 6e-9 + 1e-7 * row.height);
    EXPECT_NEAR(height_bf16[row.j].item<double>(), row.height_bf16, 6e-9 + 1e-7 * row.height_bf16);
  }
}

TEST(Rope, TableIsFrameThenRowThenColumn) {
  const nn::VideoRope rope{.head_dim = 128};
  const auto table = nn::video_rope(rope, 2, 3, 4);
  ASSERT_EQ(table.sizes(), (Shape{24, 128}));
  const auto token = table[1 * 12 + 2 * 4 + 3];  // frame 1, row 2, column 3
  const auto height = nn::rope_frequencies(42, 3, false);
  EXPECT_FLOAT_EQ(token[1].item<float>(), std::cos(nn::rope_frequencies(44, 1, false)[1].item<float>()));
  EXPECT_FLOAT_EQ(token[22 + 1].item<float>(), std::cos(2 * height[1].item<float>()));
  EXPECT_FLOAT_EQ(token[64 + 43 + 1].item<float>(), std::sin(3 * height[1].item<float>()));
}

TEST(Timestep, ValuesOfTheSpecification) {
  const auto e = nn::timestep_embedding(at::tensor({0.995f}), 2048)[0];
  const double cosines[] = {0.5445029, 0.5519540, 0.5592951, 0.5665275},
               sines[] = {0.8387589, 0.8338745, 0.8289686, 0.8240428};
  for (int k = 0; k < 4; ++k) {
    EXPECT_NEAR(e[k].item<double>(), cosines[k], 2e-7);
    EXPECT_NEAR(e[1024 + k].item<double>(), sines[k], 2e-7);
  }
  EXPECT_NEAR(e[2047].item<double>(), 1.00398938e-4, 1e-10);
}

TEST(Patchify, OrdersOfInputAndOutput) {
  const auto clip = at::arange(2 * 3 * 4 * 6, at::kFloat).view({2, 3, 4, 6});
  const auto tokens = nn::patchify(clip, 2);
  ASSERT_EQ(tokens.sizes(), (Shape{3 * 2 * 3, 8}));
  const int64_t frame = 1, row = 1, column = 2;
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t ph = 0; ph < 2; ++ph)
      for (int64_t pw = 0; pw < 2; ++pw)
        EXPECT_EQ(tokens[frame * 6 + row * 3 + column][c * 4 + ph * 2 + pw].item<float>(),
                  clip[c][frame][2 * row + ph][2 * column + pw].item<float>());
  // The output order is (row, column, channel): the same features permuted come back as the clip.
  const auto permuted = tokens.view({18, 2, 2, 2}).permute({0, 2, 3, 1}).reshape({18, 8});
  EXPECT_TRUE(at::equal(nn::unpatchify(permuted, 2, 3, 2, 3), clip));
}

}  // namespace
}  // namespace orrery
