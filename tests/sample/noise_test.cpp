// The numbers printed in spec cosmos-predict2.5 §5.6, and seeds.
#include "orrery/sample/noise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<float> values(const Tensor& t) {
  return {t.const_data_ptr<float>(), t.const_data_ptr<float>() + t.numel()};
}

TEST(NumpyNoise, FirstNumbersOfSeeds0And1) {
  EXPECT_THAT(values(numpy_noise({2, 4}, 0)),
              Pointwise(FloatNear(2e-7f), {1.76405239, 0.400157213, 0.97873801, 2.24089313, 1.867558,
                                           -0.977277875, 0.950088441, -0.151357204}));
  EXPECT_THAT(values(numpy_noise({8}, 1)),
              Pointwise(FloatNear(2e-7f), {1.62434542, -0.611756384, -0.528171778, -1.0729686, 0.865407646,
                                           -2.30153871, 1.74481177, -0.761206925}));
}

TEST(NumpyNoise, OfTheDefaultClip) {
  const Tensor noise = numpy_noise({1, 16, 24, 88, 160}, 1);
  EXPECT_NEAR(noise.to(at::kDouble).sum().item<double>(), -36.511084, 1e-4);
  EXPECT_FLOAT_EQ(noise.flatten()[-1].item<float>(), -0.11141956f);
}

TEST(NumpyNoise, DependsOnCountAndOrderOnly) {
  EXPECT_TRUE(numpy_noise({2, 3, 4}, 5).flatten().equal(numpy_noise({24}, 5)));
  EXPECT_EQ(numpy_noise({0}, 5).numel(), 0);
}

TEST(NumpyNoise, TakesTheSeedsThatNumpyTakes) {
  EXPECT_NO_THROW(numpy_noise({1}, (int64_t{1} << 32) - 1));
  EXPECT_THROW(numpy_noise({1}, int64_t{1} << 32), Error);
  EXPECT_THROW(numpy_noise({1}, -1), Error);
}

TEST(TorchNoise, AGeneratorMovesOnAndIsItsOwn) {
  const auto generator = torch_generator(7), other = torch_generator(7);
  const Tensor first = torch_noise({32}, generator), second = torch_noise({32}, generator);
  EXPECT_FALSE(first.equal(second));
  EXPECT_TRUE(torch_noise({32}, other).equal(first));
  EXPECT_EQ(torch_noise({3}, other, at::kBFloat16).scalar_type(), at::kBFloat16);
}

}  // namespace
}  // namespace orrery::sample
