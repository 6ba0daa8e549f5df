// Attention on several ranks is attention on one, whatever divides or does not: bit for bit with Ulysses,
// whole or in chunks; with a ring up to the order in which partial results are added.
#include "orrery/parallel/attention.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "orrery/comm/faulty.h"
#include "orrery/ops/attention.h"
#include "orrery/parallel/run.h"
#include "tests/parallel/on_ranks.h"
#include "tests/support/expect_error.h"

namespace orrery::testing {
namespace {

using parallel::Qkv;

// Two additions in another order, measured up to 4.8e-7; a block that is missed or met twice gives 1e-2.
constexpr double kRing = 1e-6;
// Every partial result is rounded to bfloat16 as well as the sum: 2^-8 each.
constexpr double kBFloat16 = 8e-3;

const comm::MeshShape kShapes[] = {
    {1, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 1, 4}, {1, 1, 5}, {1, 1, 8}, {1, 2, 1}, {1, 3, 1},
    {1, 4, 1}, {1, 5, 1}, {1, 8, 1}, {1, 2, 2}, {1, 2, 3}, {1, 3, 2}, {1, 2, 4}, {1, 4, 2},
};
// More chunks than heads, chunks that divide nothing.
const config::Chunks kChunks[] = {{1, false}, {2, false}, {3, false}, {9, false},
                                  {2, true},  {3, true},  {4, true},  {9, true}};

/// Queries, keys and values of a whole stream.
struct Whole {
  Tensor q, k, v;
  bool replicated = false;

  Whole(int64_t tokens, int64_t heads, int64_t width, at::ScalarType dtype = at::kFloat, bool shared = false)
      : q(at::randn({tokens, heads, width}).to(dtype)),
        k(at::randn({tokens, heads, width}).to(dtype)),
        v(at::randn({tokens, heads, width}).to(dtype)),
        replicated(shared) {}

  Qkv on(const comm::Group& group) const {
    if (replicated) return {q, k, v, q.size(0), true};
    const auto part = comm::split(q.size(0), group.size(), group.rank());
    const auto mine = [&](const Tensor& t) { return t.narrow(0, part.begin, part.size()); };
    return {mine(q), mine(k), mine(v), q.size(0)};
  }
};

/// The results of every stream, whole, on every rank.
std::vector<std::vector<Tensor>> attend(const std::vector<Whole>& streams, const comm::MeshShape& shape,
                                        const config::Plan& plan, int threads = 1,
                                        const comm::Decorate& decorate = {}) {
  return on_ranks<std::vector<Tensor>>(
      shape, plan,
      [&](const parallel::Context& ctx) {
        auto& group = ctx.mesh.sequence();
        std::vector<Qkv> mine;
        for (const Whole& s : streams) mine.push_back(s.on(group));
        auto results = parallel::attention(ctx, mine);
        for (size_t i = 0; i < streams.size(); ++i) {
          EXPECT_EQ(results[i].sizes(), mine[i].q.sizes());
          if (!streams[i].replicated) results[i] = parallel::gather(group, results[i], streams[i].q.size(0));
        }
        return results;
      },
      decorate, threads);
}

Tensor on_one_rank(const std::vector<Whole>& streams) {
  std::vector<Tensor> q, k, v;
  for (const Whole& s : streams) q.push_back(s.q), k.push_back(s.k), v.push_back(s.v);
  return ops::attention(at::cat(q), at::cat(k), at::cat(v));
}

class ParallelAttention : public ::testing::TestWithParam<comm::MeshShape> {
 protected:
  void SetUp() override { at::manual_seed(7); }

  void check(const std::vector<Whole>& streams) {
    const auto shape = GetParam();
    const Tensor whole = on_one_rank(streams);
    std::optional<Tensor> unchunked;
    for (const auto& chunks : kChunks) {
      const auto ranks = attend(streams, shape, in_chunks(chunks));
      const Tensor got = at::cat(ranks[0]);
      if (shape.ring == 1)
        EXPECT_TRUE(at::equal(got, whole)) << to_string(chunks);
      else
        EXPECT_LE(relative(got, whole), kRing) << to_string(chunks);
      if (!unchunked) unchunked = got;
      EXPECT_TRUE(at::equal(got, *unchunked)) << to_string(chunks);
      for (const auto& rank : ranks) EXPECT_TRUE(at::equal(at::cat(rank), got)) << "ranks differ";
    }
  }

 private:
  c10::InferenceMode guard_;
};

TEST_P(ParallelAttention, OfOneStreamEqualsOneRank) {
  for (const auto& [tokens, heads, width] :
       {std::tuple{1, 4, 16}, {3, 2, 8}, {7, 5, 16}, {121, 5, 24}, {67, 3, 64}, {33, 1, 128}, {900, 5, 32}}) {
    SCOPED_TRACE(concat(tokens, " tokens, ", heads, " heads of ", width));
    check({Whole(tokens, heads, width)});
  }
}

TEST_P(ParallelAttention, OfTwoStreamsEqualsOneRank) {
  for (const auto& [text, image, heads] :
       {std::tuple{5, 37, 5}, {1, 8, 3}, {3, 2, 1}, {70, 411, 3}, {0, 9, 2}})
    for (const bool replicated : {false, true}) {
      SCOPED_TRACE(
          concat(text, " + ", image, " tokens, ", heads, " heads", replicated ? ", shared text" : ""));
      check({Whole(text, heads, 16, at::kFloat, replicated), Whole(image, heads, 16)});
    }
}

TEST_P(ParallelAttention, OfReplicatedStreamsOnly) { check({Whole(11, 3, 16, at::kFloat, true)}); }

TEST_P(ParallelAttention, InBFloat16StaysWithinRounding) {
  const std::vector<Whole> streams = {Whole(9, 5, 32, at::kBFloat16, true), Whole(150, 5, 32, at::kBFloat16)};
  const Tensor whole = on_one_rank(streams);
  for (const auto& chunks : kChunks) {
    const Tensor got = at::cat(attend(streams, GetParam(), in_chunks(chunks))[0]);
    EXPECT_EQ(got.scalar_type(), at::kBFloat16);
    EXPECT_LE(relative(got, whole), kBFloat16) << to_string(chunks);
  }
}

TEST_P(ParallelAttention, DoesNotDependOnThreads) {
  const std::vector<Whole> streams = {Whole(1003, 3, 32)};
  const auto one = attend(streams, GetParam(), {}, 1), three = attend(streams, GetParam(), {}, 3);
  EXPECT_TRUE(at::equal(one[0][0], three[0][0]));
}

std::string name(const ::testing::TestParamInfo<comm::MeshShape>& test) {
  return concat("u", test.param.ulysses, "r", test.param.ring);
}

INSTANTIATE_TEST_SUITE_P(Meshes, ParallelAttention, ::testing::ValuesIn(kShapes), name);

// Exchanges that meet in another order, and chunks that overtake each other, change no bit.
TEST(ParallelAttentionDelays, ChangeNoBit) {
  const c10::InferenceMode guard;
  const std::vector<Whole> streams = {Whole(5, 5, 16, at::kFloat, true), Whole(31, 5, 16)};
  for (const comm::MeshShape& shape : {comm::MeshShape{1, 1, 3}, {1, 3, 1}, {1, 2, 2}, {1, 2, 3}}) {
    const Tensor expected = at::cat(attend(streams, shape, in_chunks({2, true}))[0]);
    for (uint64_t run = 0; run < 50; ++run) {
      const auto delayed = [&](int rank, std::string_view axis, std::unique_ptr<comm::Group> group) {
        const uint64_t seed = run * 64 + static_cast<uint64_t>(rank) * 8 + axis.size();
        return std::make_unique<comm::Delayed>(std::move(group), seed, std::chrono::microseconds(200));
      };
      const auto ranks = attend(streams, shape, in_chunks({2, true}), 1, delayed);
      for (const auto& rank : ranks) EXPECT_TRUE(at::equal(at::cat(rank), expected)) << "run " << run;
    }
  }
}

TEST(ParallelAttentionInputs, OfWrongShapesAreNamed) {
  const auto refuse = [](const std::string& part, const std::vector<Qkv>& streams) {
    expect_error(ErrorKind::kInternal, part, [&] {
      on_ranks({}, {}, std::function([&](const parallel::Context& ctx) {
                 return parallel::attention(ctx, streams)[0];
               }));
    });
  };
  const Tensor t = at::zeros({6, 2, 8});
  refuse("[5, 2, 8] for 5 tokens on rank 0 of 1, got Float [6, 2, 8]", {{t, t, t, 5}});
  refuse("got Float [6, 3, 8]", {{t, t, at::zeros({6, 3, 8}), 6}});
  refuse("got BFloat16", {{t, t.to(at::kBFloat16), t, 6}});
  refuse("replicated streams before sharded", {{t, t, t, 6}, {t, t, t, 6, true}});
  refuse("at least one stream", {});
}

}  // namespace
}  // namespace orrery::testing
