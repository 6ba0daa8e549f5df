#include "orrery/ops/modulate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include "tests/ops/implementations.h"
#include "tests/support/expect_error.h"

namespace orrery::testing {
namespace {

constexpr double kEps = 1e-6;

struct Inputs {
  Tensor x, shift, scale, row;
  Inputs(int64_t tokens, int64_t width, at::ScalarType dtype)
      // A mean far from 0 beside a small deviation is what a one-pass variance gets wrong.
      : x((at::randn({tokens, width}) + 40).to(dtype)),
        shift(at::randn({3, width})),
        scale(at::randn({3, width})),
        row(at::randint(3, {tokens}, at::kInt)) {}
};

using Param = std::tuple<Implementation, at::ScalarType, int>;
class Modulate : public ::testing::TestWithParam<Param> {};

TEST_P(Modulate, LayerNormAgreesWithFloat64) {
  const auto [implementation, dtype, width] = GetParam();
  const Inputs in(11, width, dtype);
  const Tensor y = implementation == Implementation::kReference
                       ? ops::reference::layer_norm_modulate(in.x, in.shift, in.scale, in.row, kEps)
                       : ops::layer_norm_modulate(in.x, in.shift, in.scale, in.row, kEps);
  const Tensor centred = wide(in.x) - wide(in.x).mean(-1, true);
  const Tensor normal = centred / (centred.pow(2).mean(-1, true) + kEps).sqrt();
  const Tensor expected =
      normal * (1 + wide(in.scale.index_select(0, in.row))) + wide(in.shift.index_select(0, in.row));
  EXPECT_EQ(y.scalar_type(), dtype);
  // A mean of 40, summed in as few as 4 lanes, is off by up to 1e-5, which the scale (up to 5) multiplies.
  EXPECT_LE(distance(y, expected), dtype == at::kBFloat16 ? rounding(dtype) : 6e-5);
}

TEST_P(Modulate, GatedAdditionAgreesWithFloat64) {
  const auto [implementation, dtype, width] = GetParam();
  const Inputs in(11, width, dtype);
  const Tensor x = at::randn({11, width}).to(dtype), y = at::randn({11, width}).to(dtype);
  const Tensor expected = wide(x) + wide(in.scale.index_select(0, in.row)) * wide(y);
  if (implementation == Implementation::kReference)
    ops::reference::add_gated_(x, in.scale, y, in.row);
  else
    ops::add_gated_(x, in.scale, y, in.row);
  EXPECT_LE(distance(x, expected), rounding(dtype));
}

INSTANTIATE_TEST_SUITE_P(All, Modulate,
                         ::testing::Combine(::testing::ValuesIn(kImplementations),
                                            ::testing::Values(at::kFloat, at::kBFloat16, at::kDouble),
                                            ::testing::Values(8, 33, 1024)),
                         [](const auto& test) {
                           return case_name(std::get<0>(test.param), std::get<1>(test.param),
                                            std::get<2>(test.param));
                         });

TEST(ModulateInputs, MayBeViewsWhereTheContractLetsThem) {
  const Inputs in(7, 64, at::kFloat);
  const Tensor wider = at::randn({7, 128}), tables = at::randn({3, 3, 64});
  const Tensor x = wider.slice(1, 32, 96), shift = tables.select(1, 0), scale = tables.select(1, 1);
  EXPECT_TRUE(at::equal(
      ops::layer_norm_modulate(x, shift, scale, in.row, kEps),
      ops::layer_norm_modulate(x.contiguous(), shift.contiguous(), scale.contiguous(), in.row, kEps)));
}

TEST(ModulateInputs, EmptyOnesAndMetaGiveTheShape) {
  const Tensor table = at::zeros({2, 8}), none = at::empty({0}, at::kInt);
  EXPECT_EQ(ops::layer_norm_modulate(at::empty({0, 8}), table, table, none, kEps).sizes(),
            at::IntArrayRef({0, 8}));
  const Tensor nothing = at::empty({0, 8});
  ops::add_gated_(nothing, table, nothing, none);
  const auto meta = at::TensorOptions(at::kMeta);
  const Tensor x = at::empty({5, 8}, meta.dtype(at::kBFloat16)), row = at::empty({5}, meta.dtype(at::kInt)),
               shift = at::empty({2, 8}, meta);
  const Tensor y = ops::layer_norm_modulate(x, shift, shift, row, kEps);
  EXPECT_TRUE(y.is_meta());
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_EQ(y.sizes(), x.sizes());
  ops::add_gated_(x, shift, y, row);
}

TEST(ModulateInputs, OfWrongShapesOrRowsAreNamed) {
  const Inputs in(4, 8, at::kFloat);
  const auto modulate = [&](const Tensor& shift, const Tensor& row) {
    ops::layer_norm_modulate(in.x, shift, in.scale, row, kEps);
  };
  expect_error(ErrorKind::kInternal, "table [R, 8]", [&] { modulate(at::zeros({3, 7}), in.row); });
  expect_error(ErrorKind::kInternal, "one shape", [&] { modulate(at::zeros({2, 8}), in.row); });
  expect_error(ErrorKind::kInternal, "int32 rows [4]", [&] { modulate(in.shift, in.row.to(at::kLong)); });
  expect_error(ErrorKind::kInternal, "0 … 2, got 3",
               [&] { modulate(in.shift, at::zeros({4}, at::kInt) + 3); });
  expect_error(ErrorKind::kInternal, "0 … 2, got -1",
               [&] { ops::add_gated_(in.x, in.scale, in.x, at::zeros({4}, at::kInt) - 1); });
  expect_error(ErrorKind::kInternal, "contiguous x and y", [&] {
    ops::add_gated_(in.x, in.scale, at::zeros({8, 4}).t(), in.row);
  });
}

}  // namespace
}  // namespace orrery::testing
