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
    for (const parallel::AttentionSize& size : {parallel::AttentionSize{37, 5, 8, 4},
                                                {4, 2, 8, 4},
                                                {64, 4, 8, 4},
                                                {37, 5, 8, 4, 7},
                                                {64, 4, 8, 4, 1}}) {
      comm::Recorder recorder;
      on_ranks(mesh, in_chunks({}), std::function([&](const parallel::Context& ctx) {
                 const auto mine =
                     comm::split(size.tokens, ctx.mesh.sequence().size(), ctx.mesh.sequence().rank());
                 const Tensor x = at::randn({mine.size(), size.heads, size.head_dim});
                 if (size.replicated == 0) return parallel::attention(ctx, x, x, x, size.tokens);
                 const Tensor text = at::randn({size.replicated, size.heads, size.head_dim});
                 return parallel::attention(
                     ctx, std::vector<parallel::Qkv>{{text, text, text, size.replicated, true},
                                                     {x, x, x, size.tokens, false}})[1];
               }),
               recorder.decorate());
      double flops = 0;
      for (int rank = 0; rank < mesh.size(); ++rank) {
        SCOPED_TRACE(concat(to_string(mesh), ", ", size.tokens, " tokens, ", size.replicated, " replicated, ",
                            size.heads, " heads, rank ", rank));
        const auto cost = parallel::attention_cost(mesh, rank, size);
        const auto& ulysses = recorder.at(rank, "ulysses");
        const auto& ring = recorder.at(rank, "ring");
        const int parts = mesh.ring * mesh.ulysses;
        EXPECT_EQ(cost.bytes,
                  ulysses.bytes_out(rank % mesh.ulysses) + ring.bytes_out(rank % parts / mesh.ulysses));
        EXPECT_EQ(cost.exchanges, ulysses.exchanges + ring.exchanges);
        flops += cost.flops;
      }
      const int64_t all = size.tokens + size.replicated;
      EXPECT_DOUBLE_EQ(flops, mesh.cfg * 4.0 * static_cast<double>(all * all * size.heads * size.head_dim))
          << "the ranks share the work of one";
    }
}

}  // namespace
}  // namespace orrery::testing
