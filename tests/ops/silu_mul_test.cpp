#include "orrery/ops/silu_mul.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "tests/ops/implementations.h"
#include "tests/support/expect_error.h"

namespace orrery::testing {
namespace {

Tensor silu_in_double(const Tensor& x) { return wide(x) * wide(x).sigmoid(); }

using Param = std::tuple<Implementation, at::ScalarType, int>;
class SiluMul : public ::testing::TestWithParam<Param> {};

TEST_P(SiluMul, AgreesWithFloat64) {
  const auto [implementation, dtype, width] = GetParam();
  const Tensor gate = (at::randn({3, width}) * 4).to(dtype), up = at::randn({3, width}).to(dtype);
  const bool reference = implementation == Implementation::kReference;
  const Tensor y = reference ? ops::reference::silu_mul(gate, up) : ops::silu_mul(gate, up);
  EXPECT_EQ(y.scalar_type(), dtype);
  EXPECT_LE(distance(y, silu_in_double(gate) * wide(up)), rounding(dtype));
  EXPECT_LE(distance(reference ? ops::reference::silu(gate) : ops::silu(gate), silu_in_double(gate)),
            rounding(dtype));
}

INSTANTIATE_TEST_SUITE_P(All, SiluMul,
                         ::testing::Combine(::testing::ValuesIn(kImplementations),
                                            ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                                            ::testing::Values(1, 17, 100, 4097)),
                         [](const auto& test) {
                           return case_name(std::get<0>(test.param), std::get<1>(test.param),
                                            std::get<2>(test.param));
                         });

TEST(Silu, IsAccurateRelativeToItsValue) {
  const Tensor x = at::linspace(-80, 80, 100001), expected = silu_in_double(x);
  const Tensor error = ((wide(ops::silu(x)) - expected) / expected).masked_fill(x == 0, 0).abs();
  EXPECT_LE(error.max().item<double>(), 4e-7);
}

TEST(Silu, HandlesTheEndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = at::empty({5});
  const float values[] = {-1e30f, 1e30f, infinity, std::nanf(""), 0.0f};
  std::copy(values, values + 5, x.data_ptr<float>());
  const Tensor result = ops::silu(x);
  const float* const y = result.const_data_ptr<float>();
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 1e30f);
  EXPECT_EQ(y[2], infinity);
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_EQ(y[4], 0.0f);
}

TEST(SiluMulInputs, MayBeViewsEmptyOrMeta) {
  const Tensor both = at::randn({6, 40}), gate = both.slice(1, 0, 20), up = both.slice(1, 20);
  EXPECT_TRUE(at::equal(ops::silu_mul(gate, up), ops::silu_mul(gate.contiguous(), up.contiguous())));
  EXPECT_EQ(ops::silu(at::empty({0, 3})).sizes(), at::IntArrayRef({0, 3}));
  const Tensor meta = at::empty({2, 3}, at::TensorOptions(at::kMeta).dtype(at::kBFloat16));
  EXPECT_EQ(ops::silu_mul(meta, meta).sizes(), meta.sizes());
  EXPECT_EQ(ops::silu(meta).scalar_type(), at::kBFloat16);
}

TEST(SiluMulInputs, OfWrongShapesAreNamed) {
  expect_error(ErrorKind::kInternal, "one shape", [] {
    ops::silu_mul(at::zeros({2, 3}), at::zeros({3, 2}));
  });
  expect_error(ErrorKind::kInternal, "floating", [] { ops::silu(at::zeros({2}, at::kInt)); });
}

}  // namespace
}  // namespace orrery::testing
