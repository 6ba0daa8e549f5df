#include "orrery/sample/guidance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "orrery/sample/noise.h"
#include "tests/parallel/on_ranks.h"

namespace orrery::sample {
namespace {

using testing::on_ranks;
using Guide = Tensor (*)(const parallel::Context&, double, const std::function<Tensor(Branch)>&);

const Tensor kPositive = torch_noise({83, 64}, torch_generator(1)),
             kNegative = torch_noise({83, 64}, torch_generator(2));

Tensor of(Branch branch) { return branch == Branch::kPositive ? kPositive : kNegative; }

Tensor on_one_rank(Guide guide, double scale, const std::function<Tensor(Branch)>& velocity = of) {
  return on_ranks({}, {}, {[&](const parallel::Context& ctx) { return guide(ctx, scale, velocity); }})[0];
}

TEST(Guidance, OfNvidiaPointsAwayFromTheNegative) {
  EXPECT_TRUE(at::equal(on_one_rank(guided, 3), kPositive + 3.0 * (kPositive - kNegative)));
}

TEST(Guidance, OfQwenImageKeepsEachTokensLength) {
  const Tensor v = on_one_rank(truly_guided, 4).to(at::kDouble);
  const Tensor p = kPositive.to(at::kDouble), n = kNegative.to(at::kDouble), c = n + 4.0 * (p - n);
  const auto length = [](const Tensor& t) { return t.pow(2).sum(-1, true).sqrt(); };
  EXPECT_LE((v - c * (length(p) / length(c))).abs().max().item<double>(), 2e-6);
  EXPECT_LE((length(v) / length(p) - 1).abs().max().item<double>(), 1e-6);
}

TEST(Guidance, OfQwenImageIsZeroWhereTheCombinationIs) {
  // With w = 2, c = 2 v₊ − v₋ vanishes in the first token.
  const auto velocity = [](Branch branch) {
    const Tensor v = kPositive.clone();
    if (branch == Branch::kNegative) v[0] *= 2.0;
    return v;
  };
  const Tensor v = on_one_rank(truly_guided, 2, velocity);
  EXPECT_TRUE(at::equal(v[0], at::zeros_like(v[0])));
  EXPECT_LE((v - kPositive).narrow(0, 1, 82).abs().max().item<double>(), 1e-5);
}

TEST(Guidance, AbsentEvaluatesThePositiveBranchOnly) {
  for (const auto& [guide, scale] :
       {std::pair<Guide, double>{guided, 0}, {truly_guided, 1}, {truly_guided, 0}}) {
    int calls = 0;
    const auto velocity = [&](Branch branch) {
      ++calls;
      return of(branch);
    };
    EXPECT_TRUE(at::equal(on_one_rank(guide, scale, velocity), kPositive));
    EXPECT_EQ(calls, 1);
  }
}

TEST(Guidance, OnTwoBranchGroupsHasTheSameBits) {
  for (const auto& [guide, scale] : {std::pair<Guide, double>{guided, 7}, {truly_guided, 4}}) {
    const Tensor one = on_one_rank(guide, scale);
    std::array<int, 6> calls = {};
    for (const int threads : {1, 2}) {
      const auto results =
          on_ranks({.cfg = 2, .ring = 1, .ulysses = 3}, {}, {[&](const parallel::Context& ctx) {
                     return guide(ctx, scale, [&](Branch branch) {
                       ++calls[static_cast<size_t>(ctx.mesh.rank())];
                       return of(branch);
                     });
                   }},
                   {}, threads);
      ASSERT_EQ(results.size(), 6u);
      for (const Tensor& result : results) EXPECT_TRUE(at::equal(result, one));
    }
    EXPECT_EQ(calls, (std::array<int, 6>{2, 2, 2, 2, 2, 2}));
  }
}

}  // namespace
}  // namespace orrery::sample
