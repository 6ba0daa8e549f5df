#include "orrery/engine/verify.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

const Tensor kOne = at::tensor({3.0F, -4.0F, 0.0F, 0.0F});

std::vector<Agreement> with(const Tensor& many, comm::MeshShape mesh, at::ScalarType dtype = at::kFloat,
                            const std::string& stage = "step 1") {
  return agreements({{"text", kOne}, {stage, kOne}, {"elsewhere", kOne}}, {{"text", kOne}, {stage, many}},
                    mesh, dtype);
}

TEST(Agreements, SaysWhatDiffersAndByHowMuch) {
  const auto all = with(at::tensor({3.0F, -4.0F, 0.0F, 0.5F}), {1, 1, 2});
  ASSERT_EQ(all.size(), 2u) << "what one of them has not shown is not compared";
  EXPECT_TRUE(all[0].identical);
  EXPECT_TRUE(all[0].within);
  EXPECT_FALSE(all[1].identical);
  EXPECT_DOUBLE_EQ(all[1].max_abs, 0.5);
  EXPECT_DOUBLE_EQ(all[1].relative, 0.1);
  EXPECT_FALSE(all[1].within);
  EXPECT_NE(to_string(all).find("beyond docs/numerics.md"), std::string::npos);
}

TEST(Agreements, OneBitIsTooMuchWithoutARing) {
  const Tensor near = at::tensor({3.0F, -4.0F, 0.0F, 1e-7F});
  EXPECT_FALSE(with(near, {2, 1, 2})[1].within);
  EXPECT_TRUE(with(near, {1, 2, 1})[1].within);
  EXPECT_FALSE(with(at::tensor({3.0F, -4.0F, 0.0F, 1e-3F}), {1, 2, 1})[1].within);
}

TEST(Agreements, Bfloat16IsJudgedByBlockAndByStep) {
  const Tensor off = at::tensor({3.0F, -4.0F, 0.0F, 0.1F});  // 2 %
  EXPECT_TRUE(with(off, {1, 1, 2}, at::kBFloat16)[1].within);
  EXPECT_FALSE(with(off, {1, 1, 2}, at::kBFloat16, "negative block 1")[1].within);
}

TEST(Agreements, FramesHaveAPsnr) {
  const Tensor one = at::tensor({10, 20, 30, 40}, at::kByte), many = at::tensor({10, 20, 31, 40}, at::kByte);
  const auto frames = agreements({{"frames", one}}, {{"frames", many}}, {1, 2, 1}, at::kFloat)[0];
  EXPECT_NEAR(frames.psnr.value(), 54.15, 0.01);
  EXPECT_TRUE(frames.within);
}

}  // namespace
}  // namespace orrery
