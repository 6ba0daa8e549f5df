#include "orrery/ops/channel_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "orrery/base/error.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

struct Case {
  int64_t channels;
  at::ScalarType dtype;
  bool silu;
};

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.channels << " channels, " << c.dtype << (c.silu ? ", silu" : "");
}

class ChannelNorm : public ::testing::TestWithParam<Case> {};

TEST_P(ChannelNorm, KernelMatchesReference) {
  const auto [channels, dtype, silu] = GetParam();
  const Tensor x = (at::randn({3, 5, 7, channels}) * 3).to(dtype), weight = at::randn({channels});
  const Tensor out = at::empty({3, 5, 7, channels}, dtype), expected = at::empty_like(out);
  ops::channel_norm(x, weight, silu, out);
  ops::reference::channel_norm(x, weight, silu, expected);
  EXPECT_LE(testing::max_abs_over_rms(out, expected), dtype == at::kFloat ? 5e-6 : 2e-2);
}

INSTANTIATE_TEST_SUITE_P(All, ChannelNorm,
                         ::testing::Values(Case{1, at::kFloat, true}, Case{12, at::kFloat, false},
                                           Case{16, at::kFloat, true}, Case{37, at::kFloat, true},
                                           Case{96, at::kFloat, true}, Case{96, at::kBFloat16, true},
                                           Case{20, at::kBFloat16, false}, Case{384, at::kFloat, false}));

TEST(ChannelNormTest, WritesTheInteriorOnly) {
  const Tensor x = at::randn({2, 4, 6, 24}), weight = at::randn({24});
  const Tensor padded = at::full({4, 6, 8, 24}, 7.0), plain = at::empty_like(x);
  ops::channel_norm(x, weight, true, padded.narrow(0, 2, 2).narrow(1, 1, 4).narrow(2, 1, 6));
  ops::channel_norm(x, weight, true, plain);
  EXPECT_TRUE(at::equal(padded.narrow(0, 2, 2).narrow(1, 1, 4).narrow(2, 1, 6), plain));
  EXPECT_EQ((padded == 7).sum().item<int64_t>(), padded.numel() - plain.numel());
}

TEST(ChannelNormTest, ZeroAndLargePixels) {
  const Tensor x = at::zeros({1, 1, 3, 16}), out = at::empty_like(x);
  x.select(2, 1).fill_(1e18);   // whose square is finite in float32, and its sum over channels too
  x.select(2, 2).fill_(-50.0);  // silu of a large negative value
  ops::channel_norm(x, at::full({16}, 30.0), true, out);
  EXPECT_EQ(out.select(2, 0).abs().max().item<float>(), 0);
  EXPECT_NEAR(out.select(2, 1).max().item<float>(), 30, 1e-4);
  EXPECT_NEAR(out.select(2, 2).max().item<float>(), 0, 1e-10);
}

TEST(ChannelNormTest, RowsDoNotDependOnTheirNeighbours) {
  const Tensor x = at::randn({2, 9, 5, 40}), weight = at::randn({40}), whole = at::empty_like(x);
  ops::channel_norm(x, weight, true, whole);
  for (const int64_t begin : {0, 1, 4, 8}) {
    const Tensor part = x.narrow(1, begin, 9 - begin).contiguous(), out = at::empty_like(part);
    ops::channel_norm(part, weight, true, out);
    EXPECT_TRUE(at::equal(out, whole.narrow(1, begin, 9 - begin)));
  }
}

TEST(ChannelNormTest, RefusesWrongShapes) {
  const Tensor x = at::zeros({1, 2, 3, 16}), out = at::empty_like(x);
  EXPECT_THROW(ops::channel_norm(x, at::zeros({15}), true, out), Error);
  EXPECT_THROW(ops::channel_norm(x, at::zeros({16}), true, at::zeros({1, 2, 4, 16})), Error);
  EXPECT_THROW(ops::channel_norm(x.transpose(1, 2), at::zeros({16}), true, out), Error);
}

}  // namespace
}  // namespace orrery
