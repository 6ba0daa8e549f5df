// What a plan is said to cost is what it costs.
#include "orrery/parallel/cost.h"

#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/comm/recording.h"
#include "orrery/comm/split.h"
#include "orrery/parallel/attention.h"
#include "tests/parallel/on_ranks.h"

namespace orrery::testing {
namespace {

TEST(AttentionCost, IsWhatARunSends) {
  const c10::InferenceMode guard;
  for (const comm::MeshShape& mesh :
       {comm::MeshShape{1, 1, 1}, {1, 1, 3}, {1, 4, 1}, {1, 2, 3}, {1, 3, 2}, {2, 2, 2}})
    for (const auto& [tokens, heads] : {std::pair<int64_t, int64_t>{37, 5}, {4, 2}, {64, 4}}) {
      const parallel::AttentionSize size{tokens, heads, 8, 4};
      comm::Recorder recorder;
      on_ranks(mesh, in_chunks({}), std::function([&](const parallel::Context& ctx) {
                 const auto mine =
                     comm::split(size.tokens, ctx.mesh.sequence().size(), ctx.mesh.sequence().rank());
                 const Tensor x = at::randn({mine.size(), size.heads, size.head_dim});
                 return parallel::attention(ctx, x, x, x, size.tokens);
               }),
               recorder.decorate());
      double flops = 0;
      for (int rank = 0; rank < mesh.size(); ++rank) {
        SCOPED_TRACE(concat(to_string(mesh), ", ", tokens, " tokens, ", heads, " heads, rank ", rank));
        const auto cost = parallel::attention_cost(mesh, rank, size);
        const auto& ulysses = recorder.at(rank, "ulysses");
        const auto& ring = recorder.at(rank, "ring");
        const int parts = mesh.ring * mesh.ulysses;
        EXPECT_EQ(cost.bytes,
                  ulysses.bytes_out(rank % mesh.ulysses) + ring.bytes_out(rank % parts / mesh.ulysses));
        EXPECT_EQ(cost.exchanges, ulysses.exchanges + ring.exchanges);
        flops += cost.flops;
      }
      EXPECT_DOUBLE_EQ(flops, mesh.cfg * 4.0 * static_cast<double>(tokens * tokens * heads * size.head_dim))
          << "the ranks share the work of one";
    }
}

}  // namespace
}  // namespace orrery::testing
