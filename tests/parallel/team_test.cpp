#include "orrery/parallel/team.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <thread>

#include "orrery/base/error.h"
#include "orrery/comm/collectives.h"

namespace orrery {
namespace {

TEST(Team, AsksOnTheCallersThreadOnly) {
  const parallel::Team team({}, {.cfg = 2, .ulysses = 2, .ring = 1}, 2);
  const auto caller = std::this_thread::get_id();
  team.run([&](const parallel::Context& ctx) {
    const bool answer = parallel::any(ctx, [&] {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      return true;
    });
    EXPECT_TRUE(answer);
    EXPECT_EQ(comm::agree(ctx.mesh.control(), ctx.mesh.rank() == 0 ? 42 : 0), 42);
    EXPECT_EQ(parallel::largest(ctx, ctx.mesh.rank()), 3);
    return Tensor();
  });
}

TEST(Team, TheFirstErrorComesBackAndTheTeamLives) {
  const parallel::Team team({}, {.cfg = 1, .ulysses = 3, .ring = 1}, 2);
  try {
    team.run([](const parallel::Context& ctx) {
      require(ctx.mesh.rank() != 1, "rank one is unwell");
      comm::agree(ctx.mesh.control(), 0);
      return Tensor();
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "rank 1 failed before its first exchange: rank one is unwell");
  }
  EXPECT_EQ(team.run([](const parallel::Context& ctx) { return at::randn({ctx.mesh.size()}); }).size(0), 3);
}

}  // namespace
}  // namespace orrery
