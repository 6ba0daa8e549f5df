#include "orrery/ops/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include "tests/ops/implementations.h"
#include "tests/support/expect_error.h"

namespace orrery::testing {
namespace {

constexpr double kEps = 1e-6;

Tensor norm_in_double(const Tensor& x, const Tensor& weight) {
  return wide(x) / (wide(x).pow(2).mean(-1, true) + kEps).sqrt() * wide(weight);
}

Tensor rotate_in_double(const Tensor& x, const Tensor& rope, ops::Pairs pairs) {
  const int64_t half = x.size(-1) / 2;
  const bool adjacent = pairs == ops::Pairs::kAdjacent;
  const auto first = [&](const Tensor& t) { return adjacent ? t.slice(2, 0, {}, 2) : t.slice(2, 0, half); };
  const auto second = [&](const Tensor& t) { return adjacent ? t.slice(2, 1, {}, 2) : t.slice(2, half); };
  const Tensor cos = wide(rope).slice(1, 0, half).unsqueeze(1), sin = wide(rope).slice(1, half).unsqueeze(1);
  const Tensor a = first(wide(x)), b = second(wide(x)), y = at::empty(x.sizes(), at::kDouble);
  first(y).copy_(a * cos - b * sin);
  second(y).copy_(b * cos + a * sin);
  return y;
}

using Param = std::tuple<Implementation, at::ScalarType, int>;
class RmsNorm : public ::testing::TestWithParam<Param> {};

TEST_P(RmsNorm, AgreesWithFloat64) {
  const auto [implementation, dtype, width] = GetParam();
  const Tensor x = (at::randn({4, 5, width}) * 3).to(dtype), weight = at::randn({width});
  const Tensor y = implementation == Implementation::kReference ? ops::reference::rms_norm(x, weight, kEps)
                                                                : ops::rms_norm(x, weight, kEps);
  EXPECT_EQ(y.scalar_type(), dtype);
  EXPECT_LE(distance(y, norm_in_double(x, weight)), rounding(dtype));
}

INSTANTIATE_TEST_SUITE_P(All, RmsNorm,
                         ::testing::Combine(::testing::ValuesIn(kImplementations),
                                            ::testing::Values(at::kFloat, at::kBFloat16, at::kDouble),
                                            ::testing::Values(1, 15, 64, 100, 2051)),
                         [](const auto& test) {
                           return case_name(std::get<0>(test.param), std::get<1>(test.param),
                                            std::get<2>(test.param));
                         });

class RmsNormRope : public ::testing::TestWithParam<Param> {};

TEST_P(RmsNormRope, AgreesWithFloat64) {
  const auto [implementation, dtype, width] = GetParam();
  const Tensor x = at::randn({6, 3, width}).to(dtype), weight = at::randn({width}),
               rope = at::randn({6, width});
  for (const bool with_norm : {false, true})
    for (const bool with_rope : {false, true})
      for (const auto pairs : {ops::Pairs::kHalves, ops::Pairs::kAdjacent}) {
        const Tensor w = with_norm ? weight : Tensor(), r = with_rope ? rope : Tensor();
        const Tensor y = implementation == Implementation::kReference
                             ? ops::reference::rms_norm_rope(x, w, r, kEps, pairs)
                             : ops::rms_norm_rope(x, w, r, kEps, pairs);
        Tensor expected = with_norm ? norm_in_double(x, weight) : wide(x);
        if (with_rope) expected = rotate_in_double(expected, rope, pairs);
        EXPECT_LE(distance(y, expected), rounding(dtype))
            << with_norm << with_rope << static_cast<int>(pairs);
        EXPECT_TRUE(y.is_contiguous());
      }
}

INSTANTIATE_TEST_SUITE_P(All, RmsNormRope,
                         ::testing::Combine(::testing::ValuesIn(kImplementations),
                                            ::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::Values(2, 6, 30, 44, 128)),
                         [](const auto& test) {
                           return case_name(std::get<0>(test.param), std::get<1>(test.param),
                                            std::get<2>(test.param));
                         });

TEST(RmsNormInputs, MayBeViews) {
  const Tensor qkv = at::randn({9, 3, 4, 32}), weight = at::randn({32}).to(at::kBFloat16),
               rope = at::randn({9, 32});
  for (const Tensor& x :
       {qkv.select(1, 1), at::randn({4, 9, 32}).transpose(0, 1), at::randn({9, 32, 4}).transpose(1, 2)}) {
    EXPECT_TRUE(at::equal(ops::rms_norm_rope(x, weight, rope, kEps),
                          ops::rms_norm_rope(x.contiguous(), weight, rope, kEps)));
    EXPECT_TRUE(at::equal(ops::rms_norm(x, weight, kEps), ops::rms_norm(x.contiguous(), weight, kEps)));
  }
}

TEST(RmsNormInputs, EmptyOnesGiveEmptyResults) {
  EXPECT_EQ(ops::rms_norm(at::empty({0, 8}), at::zeros({8}), kEps).sizes(), at::IntArrayRef({0, 8}));
  EXPECT_EQ(ops::rms_norm_rope(at::empty({0, 2, 8}), at::zeros({8}), at::zeros({0, 8}), kEps).sizes(),
            at::IntArrayRef({0, 2, 8}));
  EXPECT_EQ(ops::rms_norm_rope(at::empty({3, 0, 8}), {}, at::zeros({3, 8}), kEps).sizes(),
            at::IntArrayRef({3, 0, 8}));
}

TEST(RmsNormInputs, OnMetaGiveTheShape) {
  const auto options = at::TensorOptions(at::kMeta).dtype(at::kBFloat16);
  const Tensor x = at::empty({5, 4, 16}, options), weight = at::empty({16}, options);
  for (const Tensor& y : {ops::rms_norm(x, weight, kEps), ops::rms_norm_rope(x, weight, {}, kEps)}) {
    EXPECT_TRUE(y.is_meta());
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  }
}

TEST(RmsNormInputs, OfWrongShapesAreNamed) {
  const Tensor x = at::zeros({2, 3, 8});
  expect_error(ErrorKind::kInternal, "weight of 8", [&] { ops::rms_norm(x, at::zeros({7}), kEps); });
  expect_error(ErrorKind::kInternal, "table of [2, 8]", [&] {
    ops::rms_norm_rope(x, {}, at::zeros({3, 8}), kEps);
  });
  expect_error(ErrorKind::kInternal, "even width", [&] {
    ops::rms_norm_rope(at::zeros({2, 3, 7}), {}, at::zeros({2, 7}), kEps);
  });
  expect_error(ErrorKind::kInternal, "[S, N, D]", [&] {
    ops::rms_norm_rope(at::zeros({2, 8}), {}, {}, kEps);
  });
}

}  // namespace
}  // namespace orrery::testing
