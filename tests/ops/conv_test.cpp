#include "orrery/ops/conv.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <random>

#include "orrery/base/error.h"
#include "orrery/ops/conv_winograd.h"
#include "tests/support/golden.h"
#include "tests/support/threads.h"

namespace orrery {
namespace {

using testing::max_abs;

struct Case {
  int64_t in, out;
  ops::Stride kernel, stride;
  int64_t frames, rows, columns;
};

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.in << "→" << c.out << " " << c.kernel[0] << "×" << c.kernel[1] << "×" << c.kernel[2] << " / "
            << c.stride[0] << "," << c.stride[1] << " on " << c.frames << "×" << c.rows << "×" << c.columns;
}

// The convolutions of the Wan VAE: large and small numbers of channels, strides in space and in time.
const Case kCases[] = {
    {16, 24, {3, 3, 3}, {1, 1, 1}, 5, 8, 10}, {3, 96, {3, 3, 3}, {1, 1, 1}, 4, 10, 9},
    {96, 3, {3, 3, 3}, {1, 1, 1}, 3, 7, 8},   {32, 32, {1, 3, 3}, {1, 2, 2}, 2, 9, 11},
    {32, 32, {3, 1, 1}, {2, 1, 1}, 5, 6, 7},  {4, 7, {1, 2, 2}, {1, 1, 1}, 2, 5, 6},
    {192, 96, {3, 3, 3}, {1, 1, 1}, 3, 6, 8},
};

struct Inputs {
  Tensor x, weight, bias;
  explicit Inputs(const Case& c)
      : x(at::randn({c.frames, c.rows, c.columns, c.in})),
        weight(at::randn({c.out, c.in, c.kernel[0], c.kernel[1], c.kernel[2]})),
        bias(at::randn({c.out})) {
    weight /= std::sqrt(static_cast<double>(weight[0].numel()));
  }
};

Tensor in_float64(const Inputs& in, ops::Stride stride) {
  return ops::reference::conv(in.x.to(at::kDouble), in.weight.to(at::kDouble), in.bias.to(at::kDouble),
                              stride);
}

class Conv : public ::testing::TestWithParam<Case> {};

TEST_P(Conv, KernelMatchesReference) {
  const Case& c = GetParam();
  const Inputs in(c);
  EXPECT_LE(max_abs(ops::conv(in.x, in.weight, in.bias, c.stride), in_float64(in, c.stride)), 3e-5);
}

TEST_P(Conv, AddsToWhatIsThere) {
  const Case& c = GetParam();
  if (c.stride != ops::Stride{1, 1, 1}) GTEST_SKIP() << "strided convolutions do not add";
  const Inputs in(c);
  const Tensor expected = in_float64(in, c.stride), before = at::randn(expected.sizes()), y = before.clone();
  ops::conv_add_(y, in.x, in.weight, in.bias);
  EXPECT_LE(max_abs(y, expected + before), 3e-5);
}

// A shard has its rows and those that the kernel reaches around them.
TEST_P(Conv, RowsDoNotDependOnTheSplit) {
  const Case& c = GetParam();
  const Inputs in(c);
  const Tensor whole = ops::conv(in.x, in.weight, in.bias, c.stride);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    const int64_t begin = std::uniform_int_distribution<int64_t>(0, whole.size(1) - 1)(random);
    const int64_t end = std::uniform_int_distribution<int64_t>(begin + 1, whole.size(1))(random);
    const testing::Threads threads(1 + i % 4);
    const int64_t first = begin * c.stride[1], rows = (end - begin - 1) * c.stride[1] + c.kernel[1];
    const Tensor part = ops::conv(in.x.narrow(1, first, rows).contiguous(), in.weight, in.bias, c.stride);
    ASSERT_TRUE(at::equal(part, whole.narrow(1, begin, end - begin)))
        << "rows " << begin << " to " << end << " with " << 1 + i % 4 << " threads";
    if (c.stride != ops::Stride{1, 1, 1}) continue;
    const Tensor sum = at::zeros(whole.sizes()), part_sum = at::zeros(part.sizes());
    ops::conv_add_(sum, in.x, in.weight, in.bias);
    ops::conv_add_(part_sum, in.x.narrow(1, first, rows).contiguous(), in.weight, in.bias);
    ASSERT_TRUE(at::equal(part_sum, sum.narrow(1, begin, end - begin)))
        << "adding, rows " << begin << " to " << end;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Conv, ::testing::ValuesIn(kCases));

// ---- Winograd
// -----------------------------------------------------------------------------------------------------

struct WinogradCase {
  int64_t in, out, taps, frames, rows, columns;  // of the input
};

std::ostream& operator<<(std::ostream& os, const WinogradCase& c) {
  return os << c.in << "→" << c.out << ", " << c.taps << " taps, " << c.frames << "×" << c.rows << "×"
            << c.columns;
}

class Winograd : public ::testing::TestWithParam<WinogradCase> {
 protected:
  Winograd()
      : in({GetParam().in,
            GetParam().out,
            {GetParam().taps, 3, 3},
            {1, 1, 1},
            GetParam().frames,
            GetParam().rows,
            GetParam().columns}),
        weight(ops::winograd_weight(in.weight)) {}
  Inputs in;
  Tensor weight;
};

TEST_P(Winograd, IsAsExactAsTheDirectForm) {
  const Tensor truth = in_float64(in, {1, 1, 1});
  const double direct = max_abs(ops::conv(in.x, in.weight, in.bias), truth);
  EXPECT_LE(max_abs(ops::conv_winograd(in.x, weight, in.bias), truth), std::max(2e-6, 3 * direct));
}

TEST_P(Winograd, KernelMatchesReference) {
  const Tensor got = ops::conv_winograd(in.x, weight, in.bias), expected = at::empty_like(got);
  ops::reference::conv_winograd(expected, in.x, weight, in.bias, /*add=*/false);
  EXPECT_LE(max_abs(got, expected), 3e-5);
}

TEST_P(Winograd, AddsToWhatIsThere) {
  const Tensor fresh = ops::conv_winograd(in.x, weight, in.bias), before = at::randn(fresh.sizes()),
               y = before.clone();
  ops::conv_winograd_add_(y, in.x, weight, in.bias);
  EXPECT_LE(max_abs(y, fresh + before), 3e-6);
}

TEST_P(Winograd, EvenRowsDoNotDependOnTheSplit) {
  const Tensor whole = ops::conv_winograd(in.x, weight, in.bias);
  const int64_t pairs = whole.size(1) / 2;
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) {
    const int64_t begin = 2 * std::uniform_int_distribution<int64_t>(0, pairs - 1)(random);
    const int64_t rows = 2 * std::uniform_int_distribution<int64_t>(1, pairs - begin / 2)(random);
    const testing::Threads threads(1 + i % 4);
    const Tensor part = ops::conv_winograd(in.x.narrow(1, begin, rows + 2).contiguous(), weight, in.bias);
    ASSERT_TRUE(at::equal(part, whole.narrow(1, begin, rows))) << begin << " + " << rows;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Winograd,
    ::testing::Values(WinogradCase{16, 16, 3, 3, 4, 4}, WinogradCase{32, 48, 3, 6, 12, 10},
                      WinogradCase{96, 96, 3, 5, 18, 22}, WinogradCase{96, 32, 1, 1, 34, 40},
                      WinogradCase{48, 16, 1, 3, 10, 6}, WinogradCase{16, 112, 3, 4, 22, 4}));

TEST(WinogradTest, LastTapsAloneAreTheConvolutionAfterZeroFrames) {
  const Inputs in({32, 32, {3, 3, 3}, {1, 1, 1}, 3, 6, 8});
  in.x.narrow(0, 0, 2).zero_();
  const Tensor weight = ops::winograd_weight(in.weight);
  EXPECT_TRUE(at::equal(ops::conv_winograd(in.x, weight, in.bias),
                        ops::conv_winograd(in.x.narrow(0, 2, 1), weight.narrow(0, 2, 1), in.bias)));
}

TEST(WinogradTest, WeightHasTheBitsOfTheReference) {
  for (const Shape& shape : {Shape{16, 16, 1, 3, 3}, Shape{48, 32, 3, 3, 3}, Shape{96, 80, 2, 3, 3}}) {
    const Tensor weight = at::randn(shape) * 0.1;
    const Tensor apart = at::randn({shape[0], 3, 3, shape[1], shape[2]}).permute({0, 3, 4, 1, 2});
    for (const Tensor& w : {weight, apart})
      EXPECT_TRUE(at::equal(ops::winograd_weight(w), ops::reference::winograd_weight(w))) << w.sizes();
  }
}

TEST(WinogradTest, FitsOnlyWhatItComputes) {
  EXPECT_TRUE(ops::winograd_fits(at::zeros({16, 32, 3, 3, 3})));
  EXPECT_FALSE(ops::winograd_fits(at::zeros({16, 24, 3, 3, 3})));
  EXPECT_FALSE(ops::winograd_fits(at::zeros({16, 32, 3, 1, 1})));
  EXPECT_FALSE(ops::winograd_fits(at::zeros({16, 32, 3, 3, 3}, at::kBFloat16)));
  EXPECT_THROW(ops::winograd_weight(at::zeros({16, 24, 3, 3, 3})), Error);
  const Tensor odd = at::zeros({3, 7, 8, 16});
  EXPECT_THROW(ops::conv_winograd(odd, ops::winograd_weight(at::zeros({16, 16, 3, 3, 3})), at::zeros({16})),
               Error);
}

TEST(ConvTest, WithoutRowsComesAResultWithoutRows) {
  const Tensor weight = at::randn({16, 16, 3, 3, 3}), bias = at::randn({16}), y = at::zeros({2, 0, 6, 16});
  for (const int64_t rows : {0, 1, 2})
    EXPECT_EQ(ops::conv(at::zeros({4, rows, 8, 16}), weight, bias).sizes(), (Shape{2, 0, 6, 16}));
  const Tensor border = at::zeros({4, 2, 8, 16}), square = weight.narrow(2, 0, 1);
  EXPECT_EQ(ops::conv(border.narrow(1, 0, 1).contiguous(), square, bias, {1, 2, 2}).sizes(),
            (Shape{4, 0, 3, 16}));
  EXPECT_EQ(ops::conv_winograd(border, ops::winograd_weight(weight), bias).sizes(), (Shape{2, 0, 6, 16}));
  EXPECT_NO_THROW(ops::conv_add_(y, border, weight, bias));
  EXPECT_NO_THROW(ops::conv_winograd_add_(y, border, ops::winograd_weight(weight), bias));
}

TEST(ConvTest, RefusesWrongShapes) {
  const Tensor x = at::zeros({3, 4, 5, 8}), weight = at::zeros({6, 8, 3, 3, 3}), bias = at::zeros({6});
  EXPECT_THROW(ops::conv(x.narrow(0, 0, 2), weight, bias), Error);
  EXPECT_THROW(ops::conv(x, weight, at::zeros({5})), Error);
  EXPECT_THROW(ops::conv(x.to(at::kBFloat16), weight, bias), Error);
  EXPECT_THROW(ops::conv_add_(at::zeros({1, 2, 4, 6}), x, weight, bias), Error);
}

}  // namespace
}  // namespace orrery
