// What attention sends, to the byte, against what follows from the shards alone.
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/comm/recording.h"
#include "orrery/parallel/attention.h"
#include "tests/parallel/on_ranks.h"

namespace orrery::testing {
namespace {

using comm::split;
using parallel::Qkv;

struct Case {
  comm::MeshShape mesh;
  int64_t tokens, heads, width;
  at::ScalarType dtype = at::kFloat;
  config::Chunks chunks = {};
  int64_t shared = 0;  // tokens of a replicated stream before it

  int64_t head_bytes() const { return width * (dtype == at::kFloat ? 4 : 2); }
  int64_t tokens_of(int rank) const { return split(tokens, mesh.ring * mesh.ulysses, rank).size(); }
  int64_t heads_of(int ulysses) const { return split(heads, mesh.ulysses, ulysses).size(); }
  int64_t block(int ring) const {
    int64_t sum = 0;
    for (int u = 0; u < mesh.ulysses; ++u) sum += tokens_of(ring * mesh.ulysses + u);
    return sum;
  }
  int64_t round_trips() const {
    return mesh.ulysses == 1 ? 0 : std::min(chunks.count, (heads + mesh.ulysses - 1) / mesh.ulysses);
  }
};

void attend(const Case& c, comm::Recorder& recorder) {
  on_ranks(c.mesh, in_chunks(c.chunks), std::function([&](const parallel::Context& ctx) {
             const auto random = [&](int64_t n) { return at::randn({n, c.heads, c.width}).to(c.dtype); };
             std::vector<Qkv> streams;
             const Tensor text = random(c.shared), image = random(c.tokens_of(ctx.mesh.rank()));
             if (c.shared > 0) streams.push_back({text, text, text, c.shared, true});
             streams.push_back({image, image, image, c.tokens});
             return parallel::attention(ctx, streams)[0];
           }),
           recorder.decorate());
}

/// q, k and v of this rank's tokens there, the others' tokens (and all shared ones) back.
void expect_ulysses(const Case& c, int rank, const comm::Traffic& traffic) {
  EXPECT_EQ(traffic.exchanges, 2 * c.round_trips());
  const int own = rank % c.mesh.ulysses, first = rank - own;
  for (int i = 0; i < c.mesh.ulysses; ++i) {
    const int64_t there = 3 * c.tokens_of(rank) * c.heads_of(i);
    const int64_t back = (c.tokens_of(first + i) + c.shared) * c.heads_of(own);
    EXPECT_EQ(traffic.bytes[static_cast<size_t>(i)],
              c.mesh.ulysses == 1 ? 0 : (there + back) * c.head_bytes())
        << "to " << i;
  }
}

/// k and v of every block but the one that the next place begins with, and that place's share of the results
/// of shared tokens.
void expect_ring(const Case& c, int rank, const comm::Traffic& traffic) {
  const int places = c.mesh.ring, own = rank / c.mesh.ulysses, next = (own + 1) % places;
  const int64_t calls = std::max<int64_t>(c.round_trips(), 1);
  const bool gathers = c.shared > 0 && places > 1;
  EXPECT_EQ(traffic.exchanges, calls * (places - 1 + gathers));
  int64_t tokens = 0;
  for (int place = 0; place < places; ++place)
    if (place != next) tokens += 2 * c.block(place);
  const int64_t heads = c.heads_of(rank % c.mesh.ulysses);
  for (int i = 0; i < places; ++i) {
    const int64_t gathered = gathers ? split(c.shared, places, own).size() : 0;
    const int64_t blocks = i == next && places > 1 ? tokens : 0;
    EXPECT_EQ(traffic.bytes[static_cast<size_t>(i)], (blocks + gathered) * heads * c.head_bytes())
        << "to " << i;
  }
}

class Traffic : public ::testing::TestWithParam<Case> {};

TEST_P(Traffic, IsWhatTheShardsSay) {
  const Case& c = GetParam();
  const c10::InferenceMode guard;
  comm::Recorder recorder;
  attend(c, recorder);
  for (int rank = 0; rank < c.mesh.size(); ++rank) {
    SCOPED_TRACE(concat("rank ", rank));
    expect_ulysses(c, rank, recorder.at(rank, "ulysses"));
    expect_ring(c, rank, recorder.at(rank, "ring"));
    for (const char* axis : {"cfg", "sequence", "control", "world"})
      EXPECT_EQ(recorder.at(rank, axis).exchanges, 0) << axis;
  }
}

const Case kCases[] = {
    {{1, 1, 1}, 20, 3, 8},
    {{1, 1, 2}, 40, 4, 16},
    {{1, 1, 2}, 121, 5, 24},
    {{1, 1, 4}, 121, 5, 24, at::kBFloat16},
    {{1, 1, 8}, 5, 3, 8},  // ranks without tokens, ranks without heads
    {{1, 1, 3}, 67, 7, 16, at::kFloat, {2, false}},
    {{1, 1, 3}, 67, 7, 16, at::kFloat, {2, true}},
    {{1, 1, 2}, 67, 5, 16, at::kFloat, {9, true}},  // three heads at most
    {{1, 1, 3}, 67, 7, 16, at::kFloat, {2, true}, 5},
    {{1, 2, 1}, 121, 5, 24},
    {{1, 5, 1}, 121, 5, 24, at::kBFloat16},
    {{1, 5, 1}, 3, 2, 8},
    {{1, 3, 1}, 50, 2, 8, at::kFloat, {}, 7},
    {{1, 2, 2}, 121, 5, 24},
    {{1, 2, 3}, 122, 5, 24, at::kFloat, {2, false}},
    {{1, 3, 2}, 4, 3, 8, at::kFloat, {2, true}, 2},
};

std::string name(const ::testing::TestParamInfo<Case>& test) {
  const Case& c = test.param;
  return concat(test.index, "_u", c.mesh.ulysses, "r", c.mesh.ring, "_", c.tokens, "x", c.heads,
                c.chunks.count == 1 ? ""
                : c.chunks.overlap  ? "_overlap"
                                    : "_cut",
                c.shared ? "_shared" : "");
}

INSTANTIATE_TEST_SUITE_P(Plans, Traffic, ::testing::ValuesIn(kCases), name);

// The textbook sum for one attention: Σ over i ≠ j of tokens_i · heads_j · D · size for each of q, k, v,
// o.
TEST(TrafficSum, OfUlyssesIsFourTensorsWithoutWhatStays) {
  const Case c{{1, 1, 4}, 37, 6, 8};
  comm::Recorder recorder;
  attend(c, recorder);
  int64_t sent = 0, expected = 0;
  for (int i = 0; i < 4; ++i) {
    sent += recorder.at(i, "ulysses").bytes_out(i);
    for (int j = 0; j < 4; ++j)
      if (i != j) expected += 4 * c.tokens_of(i) * c.heads_of(j) * c.head_bytes();
  }
  EXPECT_EQ(sent, expected);
}

}  // namespace
}  // namespace orrery::testing
