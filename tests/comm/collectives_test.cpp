#include "orrery/comm/collectives.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/comm/run_ranks.h"
#include "orrery/comm/solo.h"

namespace orrery::comm {
namespace {

/// [rows, 3], all values different.
Tensor table(int64_t rows) { return at::arange(rows * 3, at::kFloat).view({rows, 3}); }

class Collectives : public ::testing::TestWithParam<int> {
 protected:
  void on_ranks(const std::function<void(const Mesh&)>& fn) const {
    const auto meshes = make_thread_meshes({1, 1, GetParam()});
    run_ranks(meshes, 1, fn);
  }
};

TEST_P(Collectives, AllGatherJoinsUnevenPartsAlongAnyDimension) {
  for (const int64_t total : {0, 1, 3, 7, 16}) {
    const auto sizes = split_sizes(total, GetParam());
    on_ranks([&](const Mesh& mesh) {
      const auto [begin, end] = split(total, mesh.size(), mesh.rank());
      const Tensor whole = table(total);
      const Tensor rows = all_gather(mesh.world(), whole.slice(0, begin, end), 0, sizes);
      EXPECT_TRUE(rows.equal(whole));
      const Tensor columns = all_gather(mesh.world(), whole.t().slice(1, begin, end), -1, sizes);
      EXPECT_TRUE(columns.equal(whole.t()));
    });
  }
}

TEST_P(Collectives, GatherToGivesTheWholeToOneRank) {
  const int root = GetParam() - 1;
  const auto sizes = split_sizes(5, GetParam());
  on_ranks([&](const Mesh& mesh) {
    const auto [begin, end] = split(5, mesh.size(), mesh.rank());
    const Tensor whole = gather_to(mesh.world(), root, table(5).slice(0, begin, end), 0, sizes);
    EXPECT_EQ(whole.defined(), mesh.rank() == root);
    if (whole.defined()) {
      EXPECT_TRUE(whole.equal(table(5)));
    }
  });
}

TEST_P(Collectives, BroadcastGivesTheRootsTensorToAll) {
  const int root = GetParam() / 2;
  on_ranks([&](const Mesh& mesh) {
    const Tensor mine = mesh.rank() == root ? table(2) : Tensor();
    EXPECT_TRUE(broadcast(mesh.world(), root, mine, {{2, 3}, at::kFloat}).equal(table(2)));
    EXPECT_EQ(agree(mesh.control(), (int64_t{1} << 62) + mesh.rank()), int64_t{1} << 62);
  });
}

TEST_P(Collectives, ShiftsGoOnceAroundTheRing) {
  on_ranks([](const Mesh& mesh) {
    const auto rows = [](int rank) { return int64_t{rank} + 1; };  // every rank's message has another size
    Message held = {table(rows(mesh.rank())), at::arange(rows(mesh.rank()))};
    int owner = mesh.rank();
    for (int i = 0; i < mesh.size(); ++i) {
      owner = (owner + mesh.size() - 1) % mesh.size();
      held =
          shift(mesh.world(), std::move(held), {{{rows(owner), 3}, at::kFloat}, {{rows(owner)}, at::kLong}})
              .wait();
      ASSERT_EQ(held.size(), 2u);
      EXPECT_TRUE(held[0].equal(table(rows(owner))));
      EXPECT_TRUE(held[1].equal(at::arange(rows(owner))));
    }
    EXPECT_EQ(owner, mesh.rank());
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, ::testing::Values(1, 2, 3, 4, 5, 8));

TEST(Solo, ReturnsItsArgument) {
  Solo solo;
  const Tensor x = table(2);
  const int64_t sizes[] = {2};
  EXPECT_TRUE(all_gather(solo, x, 0, sizes).is_same(x));
  EXPECT_TRUE(gather_to(solo, 0, x, 0, sizes).is_same(x));
  EXPECT_TRUE(broadcast(solo, 0, x, {{2, 3}, at::kFloat}).is_same(x));
  EXPECT_TRUE(shift(solo, {x}, {{{2, 3}, at::kFloat}}).wait().at(0).is_same(x));
}

TEST(Solo, ChecksExtentsLikeEveryGroup) {
  Solo solo;
  EXPECT_THROW(shift(solo, {table(2)}, {{{3, 3}, at::kFloat}}), Error);
  EXPECT_THROW(solo.exchange(std::vector<Message>(2), std::vector<Extents>(1)), Error);
}

TEST(AllGather, RefusesSizesThatDoNotFit) {
  Solo solo;
  const int64_t wrong[] = {3}, many[] = {2, 2};
  EXPECT_THROW(all_gather(solo, table(2), 0, wrong), Error);
  EXPECT_THROW(all_gather(solo, table(2), 0, many), Error);
}

}  // namespace
}  // namespace orrery::comm
