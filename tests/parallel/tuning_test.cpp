#include "orrery/parallel/tuning.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "orrery/ops/attention.h"
#include "orrery/parallel/attention.h"
#include "orrery/parallel/run.h"
#include "tests/parallel/on_ranks.h"

namespace orrery::testing {
namespace {

using config::Chunks;
using namespace std::chrono_literals;

const comm::MeshShape kThree{.cfg = 1, .ring = 1, .ulysses = 3};
constexpr int kTrials = 16;  // four candidates, one round to warm up and three that count

/// What every rank has chosen after `calls` calls that take as long as `cost` says.
std::vector<std::optional<Chunks>> chosen(
    int calls, const config::Plan& plan,
    const std::function<std::chrono::milliseconds(int rank, const Chunks&)>& cost) {
  return on_ranks<std::optional<Chunks>>(kThree, plan,
                                         [&](const parallel::Context& ctx) -> std::optional<Chunks> {
                                           for (int i = 0; i < calls; ++i)
                                             ctx.tuning.run(ctx.mesh, {8}, [&](const Chunks& chunks) {
                                               std::this_thread::sleep_for(cost(ctx.mesh.rank(), chunks));
                                               return std::vector<Tensor>{};
                                             });
                                           return ctx.tuning.choice({8});
                                         });
}

using Choices = std::vector<std::optional<Chunks>>;

TEST(Tuning, KeepsTheFastestWayOfTheSlowestRank) {
  const auto cost = [](int rank, const Chunks& chunks) {
    if (chunks == Chunks{2, false}) return rank == 1 ? 40ms : 1ms;  // fast on most ranks
    return chunks == Chunks{2, true} ? 5ms : 20ms;
  };
  EXPECT_EQ(chosen(kTrials, {}, cost), Choices(3, Chunks{2, true}));
  EXPECT_EQ(chosen(kTrials - 1, {}, cost), Choices(3, std::nullopt));
}

TEST(Tuning, IsOffWhenNothingWins) {
  EXPECT_EQ(chosen(kTrials, {}, [](int, const Chunks& chunks) { return chunks.count == 1 ? 5ms : 15ms; }),
            Choices(3, Chunks{}));
}

TEST(Tuning, DoesWhatThePlanSays) {
  EXPECT_EQ(chosen(1, in_chunks({3, true}),
                   [](int, const Chunks& chunks) {
                     EXPECT_EQ(chunks, (Chunks{3, true}));
                     return 0ms;
                   }),
            Choices(3, Chunks{3, true}));
}

TEST(Tuning, DecidesForEachShapeAndForgets) {
  parallel::Tuning tuning({});
  const auto mesh = std::move(comm::make_thread_meshes({})[0]);
  const auto call = [&](int64_t shape) {
    tuning.run(mesh, {shape}, [](const Chunks&) { return std::vector<Tensor>{}; });
  };
  for (int i = 0; i < kTrials; ++i) call(1), i % 2 ? call(2) : void();
  EXPECT_TRUE(tuning.choice({1}));
  EXPECT_FALSE(tuning.choice({2}));
  tuning.forget();
  EXPECT_FALSE(tuning.choice({1}));
}

// What a run sees: the bits are those of one rank while trials go on and after.
TEST(Tuning, ChangesNoBit) {
  const c10::InferenceMode guard;
  const Tensor q = at::randn({61, 5, 16}), k = at::randn({61, 5, 16}), v = at::randn({61, 5, 16});
  const Tensor whole = ops::attention(q, k, v);
  on_ranks(kThree, {}, std::function([&](const parallel::Context& ctx) {
             auto& group = ctx.mesh.sequence();
             const auto part = comm::split(61, 3, group.rank());
             const auto mine = [&](const Tensor& t) { return t.narrow(0, part.begin, part.size()); };
             for (int i = 0; i < kTrials + 2; ++i) {
               const Tensor out = parallel::attention(ctx, mine(q), mine(k), mine(v), 61);
               EXPECT_TRUE(at::equal(parallel::gather(group, out, 61), whole)) << "call " << i;
             }
             return Tensor();
           }));
}

}  // namespace
}  // namespace orrery::testing
