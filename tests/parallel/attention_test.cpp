// Attention on several ranks is attention on one, bit for bit, whatever divides or does not.
#include "orrery/parallel/attention.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/ops/attention.h"
#include "orrery/parallel/run.h"
#include "orrery/parallel/team.h"

namespace orrery {
namespace {

struct Case {
  int64_t ranks, tokens, heads, width;
};

class UlyssesAttention : public ::testing::TestWithParam<Case> {};

TEST_P(UlyssesAttention, EqualsOneRank) {
  const auto [ranks, tokens, heads, width] = GetParam();
  const c10::InferenceMode guard;
  const auto q = at::randn({tokens, heads, width}), k = at::randn({tokens, heads, width}),
             v = at::randn({tokens, heads, width});
  const auto whole = ops::attention(q, k, v);
  const parallel::Team team({}, {.cfg = 1, .ulysses = ranks, .ring = 1}, 2);
  const auto parted = team.run([&, tokens = tokens](const parallel::Context& ctx) {
    auto& group = ctx.mesh.sequence();
    const auto part = comm::split(tokens, group.size(), group.rank());
    const auto mine = [&](const Tensor& t) { return t.narrow(0, part.begin, part.size()); };
    const auto out = parallel::attention(ctx, mine(q), mine(k), mine(v), tokens);
    EXPECT_EQ(out.size(0), part.size());
    return parallel::gather(group, out, tokens);
  });
  EXPECT_TRUE(at::equal(parted, whole));
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t ranks : {1, 2, 3, 4, 5, 8})
    for (const auto& [tokens, heads, width] :
         {std::tuple{1, 4, 16}, {7, 5, 16}, {120, 4, 32}, {121, 5, 24}, {67, 3, 64}, {33, 1, 128}})
      all.push_back({ranks, tokens, heads, width});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Splits, UlyssesAttention, ::testing::ValuesIn(cases()));

TEST(Team, DecidesOnRankZeroOnly) {
  const parallel::Team team({}, {.cfg = 2, .ulysses = 2, .ring = 1}, 2);
  const auto caller = std::this_thread::get_id();
  team.run([&](const parallel::Context& ctx) {
    const int64_t answer = parallel::decide(ctx, [&] {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      return int64_t{42};
    });
    EXPECT_EQ(answer, 42);
    EXPECT_EQ(parallel::largest(ctx, ctx.mesh.rank()), 3);
    return Tensor();
  });
}

TEST(Team, TheFirstErrorComesBackAndTheTeamLives) {
  const parallel::Team team({}, {.cfg = 1, .ulysses = 3, .ring = 1}, 2);
  try {
    team.run([](const parallel::Context& ctx) {
      require(ctx.mesh.rank() != 1, "rank one is unwell");
      parallel::decide(ctx, [] { return int64_t{0}; });
      return Tensor();
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "rank one is unwell");
  }
  EXPECT_EQ(team.run([](const parallel::Context& ctx) { return at::randn({ctx.mesh.size()}); }).size(0), 3);
}

}  // namespace
}  // namespace orrery
