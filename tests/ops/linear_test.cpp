#include "orrery/ops/linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include "tests/ops/implementations.h"
#include "tests/support/expect_error.h"
#include "tests/support/threads.h"

namespace orrery::testing {
namespace {

using ops::Activation;

Tensor in_double(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  const Tensor y = at::linear(wide(x), wide(weight), wide(bias));
  switch (activation) {
    case Activation::kGelu:
      return at::gelu(y);
    case Activation::kGeluTanh:
      return at::gelu(y, "tanh");
    case Activation::kSilu:
      return at::silu(y);
    default:
      return y;
  }
}

using Param =
    std::tuple<Implementation, at::ScalarType, at::ScalarType, std::tuple<int, int, int>, Activation>;
class Linear : public ::testing::TestWithParam<Param> {};

TEST_P(Linear, AgreesWithFloat64) {
  const auto [implementation, dtype, weight_dtype, shape, activation] = GetParam();
  const auto [rows, depth, columns] = shape;
  const Tensor x = at::randn({rows, depth}).to(dtype);
  const Tensor weight = (at::randn({columns, depth}) / std::sqrt(depth)).to(weight_dtype),
               bias = at::randn({columns});
  const Tensor y = implementation == Implementation::kReference
                       ? ops::reference::linear(x, weight, bias, activation)
                       : ops::linear(x, weight, bias, activation);
  EXPECT_EQ(y.scalar_type(), dtype);
  // In bfloat16 the reference rounds weight, bias and the activation's argument too.
  // In float32 up to 1,024 products of order 1/32 are added one after the other.
  const double tolerance = dtype == at::kBFloat16 ? 4 * rounding(dtype) : 2 * rounding(dtype);
  EXPECT_LE(distance(y, in_double(x, weight, bias, activation)), tolerance);
}

std::string name(const ::testing::TestParamInfo<Param>& test) {
  const auto& [implementation, dtype, weight_dtype, shape, activation] = test.param;
  return case_name(implementation, dtype, std::get<0>(shape), std::get<1>(shape), std::get<2>(shape),
                   static_cast<int>(activation)) +
         at::toString(weight_dtype);
}

INSTANTIATE_TEST_SUITE_P(All, Linear,
                         ::testing::Combine(::testing::ValuesIn(kImplementations),
                                            ::testing::Values(at::kFloat, at::kBFloat16),
                                            ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                                            ::testing::Values(std::tuple{1, 1, 1}, std::tuple{7, 31, 33},
                                                              std::tuple{65, 385, 49},
                                                              std::tuple{130, 1024, 193}),
                                            ::testing::Values(Activation::kNone, Activation::kGelu,
                                                              Activation::kGeluTanh, Activation::kSilu)),
                         name);

TEST(LinearWeights, StoredNarrowGiveTheBitsOfWidenedOnes) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const Tensor x = at::randn({70, 500}), weight = at::randn({210, 500}).to(dtype),
                 bias = at::randn({210}).to(dtype);
    EXPECT_TRUE(at::equal(ops::linear(x, weight, bias, Activation::kGelu),
                          ops::linear(x, weight.to(at::kFloat), bias.to(at::kFloat), Activation::kGelu)));
  }
}

TEST(LinearWeights, EveryFloat16IsWidenedExactly) {
  const Tensor bits = at::empty({1 << 16, 1}, at::kHalf);
  for (int i = 0; i < 1 << 16; ++i)
    bits.data_ptr<c10::Half>()[i] = c10::Half(static_cast<uint16_t>(i), c10::Half::from_bits());
  const Tensor got = ops::linear(at::ones({1, 1}), bits)[0], expected = bits.to(at::kFloat).squeeze(1);
  EXPECT_TRUE(at::equal(got.nan_to_num(7), expected.nan_to_num(7)));
  EXPECT_TRUE(at::equal(got.isnan(), expected.isnan()));
}

TEST(LinearWeights, ColumnBlocksGiveTheBitsOfTheWhole) {
  const Tensor x = at::randn({90, 700}), weight = at::randn({333, 700}), bias = at::randn({333});
  const Tensor whole = ops::linear(x, weight, bias);
  for (const int64_t cut : {1, 16, 100, 332})
    EXPECT_TRUE(at::equal(at::cat({ops::linear(x, weight.slice(0, 0, cut), bias.slice(0, 0, cut)),
                                   ops::linear(x, weight.slice(0, cut), bias.slice(0, cut))},
                                  1),
                          whole))
        << cut;
}

TEST(LinearInputs, KeepTheirLeadingDimensionsAndMayBeStrided) {
  const Tensor x = at::randn({3, 5, 2, 40}), weight = at::randn({30, 80});
  const Tensor rows = x.select(2, 1),
               columns = weight.slice(1, 0, 40);  // [3, 5, 40], rows 80 apart; [30, 40]
  const Tensor y = ops::linear(rows, columns);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({3, 5, 30}));
  EXPECT_TRUE(at::equal(y, ops::linear(rows.contiguous(), columns.contiguous())));
  EXPECT_TRUE(at::equal(ops::linear(at::randn({40, 6}).t(), columns).isnan(), at::zeros({6, 30}, at::kBool)));
  EXPECT_EQ(ops::linear(at::randn({40}), columns).sizes(), at::IntArrayRef({30}));
}

TEST(LinearInputs, EmptyOnesGiveEmptyResultsOrTheBias) {
  EXPECT_EQ(ops::linear(at::empty({0, 8}), at::empty({4, 8})).sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(ops::linear(at::empty({3, 8}), at::empty({0, 8})).sizes(), at::IntArrayRef({3, 0}));
  const Tensor bias = at::randn({4});
  EXPECT_TRUE(at::equal(ops::linear(at::empty({2, 0}), at::empty({4, 0}), bias), bias.expand({2, 4})));
}

TEST(LinearInputs, OnMetaGiveTheShape) {
  const Tensor x = at::empty({2, 7, 8}, at::TensorOptions(at::kMeta).dtype(at::kBFloat16));
  const Tensor y = ops::linear(x, at::empty({4, 8}, at::TensorOptions(at::kMeta)));
  EXPECT_TRUE(y.is_meta());
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 7, 4}));
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
}

TEST(LinearInputs, OfWrongShapesAreNamed) {
  const Tensor x = at::zeros({2, 8}), weight = at::zeros({4, 8});
  expect_error(ErrorKind::kInternal, "[2, 8] and [4, 9]", [&] { ops::linear(x, at::zeros({4, 9})); });
  expect_error(ErrorKind::kInternal, "bias of 4", [&] { ops::linear(x, weight, at::zeros({5})); });
  expect_error(ErrorKind::kInternal, "float32 or bfloat16", [&] { ops::linear(x.to(at::kDouble), weight); });
  expect_error(ErrorKind::kInternal, "weight of float32", [&] { ops::linear(x, weight.to(at::kInt)); });
}

TEST(LinearThreads, DoNotChangeBits) {
  const Tensor x = at::randn({300, 2100}), weight = at::randn({500, 2100});
  const Tensor expected = ops::linear(x, weight);
  for (const int count : {1, 2, 3, 5, 8}) {
    const Threads threads(count);
    EXPECT_TRUE(at::equal(ops::linear(x, weight), expected)) << count;
  }
}

}  // namespace
}  // namespace orrery::testing
