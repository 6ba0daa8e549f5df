#include "orrery/comm/mesh.h"

#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "orrery/base/error.h"
#include "orrery/comm/collectives.h"
#include "orrery/comm/run_ranks.h"

namespace orrery::comm {
namespace {

using ::testing::ElementsAre;

/// The ranks of each group as rank `of` sees them: an all-gather of the own rank over every group of every
/// rank.
std::map<std::string, std::vector<int64_t>> groups_of(const MeshShape& shape, int of) {
  std::map<std::string, std::vector<int64_t>> seen;
  const auto meshes = make_thread_meshes(shape);
  run_ranks(meshes, 1, [&](const Mesh& mesh) {
    const auto members = [&](Group& group) {
      const Tensor mine = at::scalar_tensor(mesh.rank(), at::kLong).view({1});
      const Tensor all =
          all_gather(group, mine, 0, std::vector<int64_t>(static_cast<size_t>(group.size()), 1));
      EXPECT_EQ(all[group.rank()].item<int64_t>(), mesh.rank());
      return std::vector<int64_t>(all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel());
    };
    std::map<std::string, std::vector<int64_t>> mine = {
        {"cfg", members(mesh.cfg())},         {"ring", members(mesh.ring())},
        {"ulysses", members(mesh.ulysses())}, {"sequence", members(mesh.sequence())},
        {"control", members(mesh.control())}, {"world", members(mesh.world())}};
    if (mesh.rank() == of) seen = std::move(mine);
  });
  return seen;
}

TEST(Mesh, UlyssesIsTheFastestAxisThenRingThenCfg) {
  auto seen = groups_of({.cfg = 2, .ring = 2, .ulysses = 3}, 8);  // rank 8 = cfg 1, ring 0, ulysses 2
  EXPECT_THAT(seen["cfg"], ElementsAre(2, 8));
  EXPECT_THAT(seen["ring"], ElementsAre(8, 11));
  EXPECT_THAT(seen["ulysses"], ElementsAre(6, 7, 8));
  EXPECT_THAT(seen["sequence"], ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(seen["world"], ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(seen["control"], seen["world"]);
}

TEST(Mesh, CfgTimesUlyssesPairsRanksHalfTheWorldApart) {
  auto seen = groups_of({.cfg = 2, .ulysses = 4}, 0);
  EXPECT_THAT(seen["cfg"], ElementsAre(0, 4));
  EXPECT_THAT(seen["ring"], ElementsAre(0));
  EXPECT_THAT(seen["ulysses"], ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(seen["sequence"], ElementsAre(0, 1, 2, 3));
}

TEST(Mesh, OfOneRankIsAllSolo) {
  const auto meshes = make_thread_meshes({});
  ASSERT_EQ(meshes.size(), 1u);
  for (const Group* group : {&meshes[0].cfg(), &meshes[0].ring(), &meshes[0].ulysses(), &meshes[0].sequence(),
                             &meshes[0].control(), &meshes[0].world()})
    EXPECT_EQ(group->size(), 1);
}

TEST(Mesh, DecoratesEveryGroupOfEveryRank) {
  std::map<std::string, int> decorated;
  make_thread_meshes({2, 1, 2}, [&](int rank, std::string_view axis, std::unique_ptr<Group> group) {
    EXPECT_LT(rank, 4);
    ++decorated[std::string(axis)];
    return group;
  });
  EXPECT_THAT(decorated,
              ElementsAre(std::pair{"cfg", 4}, std::pair{"control", 4}, std::pair{"ring", 4},
                          std::pair{"sequence", 4}, std::pair{"ulysses", 4}, std::pair{"world", 4}));
}

TEST(Mesh, RefusesImpossibleShapes) {
  EXPECT_THROW(make_thread_meshes({.cfg = 0}), Error);
  EXPECT_THROW(make_thread_meshes({.ulysses = -1}), Error);
  try {
    make_thread_meshes({.cfg = 3});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kRequest);
    EXPECT_THAT(e.message(), ::testing::HasSubstr("1 or 2 cfg ranks, got 3"));
  }
}

TEST(Split, CutsInOrderWithTheLongerPartsFirst) {
  EXPECT_THAT(split_sizes(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(split_sizes(2, 3), ElementsAre(1, 1, 0));
  EXPECT_THAT(split_sizes(0, 2), ElementsAre(0, 0));
  EXPECT_EQ(split(10, 4, 2), (Range{6, 8}));
  EXPECT_EQ(split(2, 3, 2), (Range{2, 2}));
  for (int64_t total = 0; total < 40; ++total)
    for (int64_t parts = 1; parts < 10; ++parts) {
      int64_t next = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const Range range = split(total, parts, i);
        EXPECT_EQ(range.begin, next);
        next = range.end;
      }
      EXPECT_EQ(next, total);
    }
}

TEST(Split, RefusesPartsThatDoNotExist) {
  EXPECT_THROW(split(4, 2, 2), Error);
  EXPECT_THROW(split(4, 0, 0), Error);
  EXPECT_THROW(split(-1, 2, 0), Error);
}

}  // namespace
}  // namespace orrery::comm
