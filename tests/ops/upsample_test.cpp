#include "orrery/ops/upsample.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/zeros.h>

#include "orrery/base/error.h"
#include "tests/support/golden.h"
#include "tests/support/threads.h"

namespace orrery {
namespace {

TEST(Upsample, EqualsNearestThenConvolution) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 6}, {1, 1}, {5, 3}}) {
    const Tensor x = at::randn({3, rows, columns, 8}), weight = at::randn({6, 8, 3, 3}) / 8,
                 bias = at::randn({6});
    const Tensor padded = at::zeros({3, rows + 2, columns + 2, 8});
    padded.narrow(1, 1, rows).narrow(2, 1, columns).copy_(x);
    const Tensor large = at::upsample_nearest2d(x.permute({0, 3, 1, 2}).to(at::kDouble),
                                                {2 * rows, 2 * columns}, std::nullopt, std::nullopt);
    const Tensor expected =
        at::conv2d(large, weight.to(at::kDouble), bias.to(at::kDouble), 1, 1).permute({0, 2, 3, 1});
    const Tensor got = ops::upsample_conv(padded, ops::upsample_weight(weight), bias);
    EXPECT_TRUE(got.is_contiguous());
    EXPECT_LE(testing::max_abs(got, expected), 1e-5) << rows << "×" << columns;
  }
}

TEST(Upsample, RowsDoNotDependOnTheSplit) {
  const Tensor padded = at::randn({2, 11, 9, 32}), weight = ops::upsample_weight(at::randn({16, 32, 3, 3})),
               bias = at::randn({16});
  const Tensor whole = ops::upsample_conv(padded, weight, bias);
  for (int64_t begin = 0; begin < 9; ++begin)
    for (int64_t rows = 1; begin + rows <= 9; ++rows) {
      const testing::Threads threads(static_cast<int>(1 + rows % 4));
      const Tensor part = ops::upsample_conv(padded.narrow(1, begin, rows + 2).contiguous(), weight, bias);
      ASSERT_TRUE(at::equal(part, whole.narrow(1, 2 * begin, 2 * rows))) << begin << " + " << rows;
    }
}

TEST(Upsample, WithoutRowsComesAResultWithoutRows) {
  const Tensor y = ops::upsample_conv(at::zeros({2, 2, 5, 8}), at::zeros({24, 8, 1, 2, 2}), at::zeros({6}));
  EXPECT_EQ(y.sizes(), (Shape{2, 0, 6, 6}));
}

TEST(Upsample, RefusesWrongShapes) {
  EXPECT_THROW(ops::upsample_weight(at::zeros({4, 4, 1, 3, 3})), Error);
  EXPECT_THROW(ops::upsample_conv(at::zeros({1, 4, 2, 8}), at::zeros({24, 8, 1, 2, 2}), at::zeros({6})),
               Error);
  EXPECT_THROW(ops::upsample_conv(at::zeros({1, 4, 4, 8}), at::zeros({6, 8, 1, 2, 2}), at::zeros({6})),
               Error);
}

}  // namespace
}  // namespace orrery
