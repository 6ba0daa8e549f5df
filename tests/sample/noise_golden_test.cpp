// The first noise of a run: numpy's legacy generator and torch's CPU generator.
#include <gtest/gtest.h>

#include <cmath>

#include "orrery/sample/noise.h"
#include "tests/support/golden.h"

namespace orrery::sample {
namespace {

using testing::Json;

/// How many float32 numbers lie between the two (signs equal).
int64_t ulps(float a, double expected) {
  const auto b = static_cast<float>(expected);
  int32_t x = 0, y = 0;
  std::memcpy(&x, &a, 4);
  std::memcpy(&y, &b, 4);
  return std::abs(int64_t{x} - int64_t{y});
}

/// Compares with a summary of the reference's draw.
void expect_summary(const Tensor& noise, const Json& golden, int64_t tolerance, double& worst) {
  EXPECT_EQ(noise.sizes().vec(), golden.at("shape").get<Shape>());
  const float* values = noise.const_data_ptr<float>();
  const auto check = [&](float value, double expected) {
    const int64_t distance = ulps(value, expected);
    EXPECT_LE(distance, tolerance) << value << " instead of " << expected;
    worst = std::max(worst, static_cast<double>(distance));
  };
  const Json& first = golden.at("first");
  for (size_t i = 0; i < first.size(); ++i) check(values[i], first[i]);
  check(values[noise.numel() - 1], golden.at("last"));
  // Roundings of one unit in the last place average out; 1e-7 per value is far above them and far below one
  // wrong value.
  EXPECT_NEAR(noise.to(at::kDouble).sum().item<double>(), golden.at("sum_float64").get<double>(),
              1e-7 * std::sqrt(static_cast<double>(noise.numel())) + 1e-9);
}

class NoiseGolden : public ::testing::Test {
 protected:
  const Json golden_ = testing::read_json(testing::golden_root() / "noise/noise.json");
  double worst_ = 0;
};

TEST_F(NoiseGolden, NumpysLegacyGenerator) {
  ASSERT_FALSE(golden_.at("numpy").empty());
  for (const Json& golden : golden_.at("numpy")) {
    SCOPED_TRACE(golden.at("seed"));
    expect_summary(numpy_noise(golden.at("shape"), golden.at("seed")), golden, 1, worst_);
  }
  std::printf("largest deviation: %g ulp\n", worst_);
}

TEST_F(NoiseGolden, TorchsGenerator) {
  ASSERT_FALSE(golden_.at("torch").empty());
  for (const Json& golden : golden_.at("torch")) {
    SCOPED_TRACE(golden.at("seed"));
    const auto shape = golden.at("shape").get<Shape>();
    const auto generator = torch_generator(golden.at("seed"));
    expect_summary(torch_noise(shape, generator), golden, 2, worst_);
    if (golden.contains("next_4_of_the_same_generator")) {
      const Tensor next = torch_noise({4}, generator);
      for (int i = 0; i < 4; ++i)
        EXPECT_LE(ulps(next[i].item<float>(), golden["next_4_of_the_same_generator"][i]), 2);
    }
    if (golden.contains("bf16_first")) {
      const Tensor half = torch_noise(shape, torch_generator(golden.at("seed")), at::kBFloat16).flatten();
      for (size_t i = 0; i < golden["bf16_first"].size(); ++i)
        EXPECT_EQ(half[static_cast<int64_t>(i)].item<float>(), golden["bf16_first"][i].get<float>());
    }
  }
  std::printf("largest deviation: %g ulp\n", worst_);
}

}  // namespace
}  // namespace orrery::sample
