// Rows that ranks share: what lies beside them, and what travels for it.
#include "orrery/parallel/halo.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/comm/recording.h"
#include "orrery/comm/run_ranks.h"

namespace orrery {
namespace {

using parallel::Rows;

constexpr int64_t kScale = 2;

/// Runs fn on the members of one group.
void on_ranks(int ranks, const std::function<void(comm::Group&)>& fn, const comm::Decorate& decorate = {}) {
  const auto meshes = comm::make_thread_meshes({.ulysses = ranks}, decorate);
  comm::run_ranks(meshes, 1, [&](const comm::Mesh& mesh) { fn(mesh.ulysses()); });
}

struct Case {
  int ranks;
  int64_t rows;  // of the coarsest resolution
};

class SharedRows : public ::testing::TestWithParam<Case> {
 protected:
  const Tensor picture = at::randn({3, kScale* GetParam().rows, 5, 4});

  /// The picture's rows [begin, end), those beyond it `edge`.
  Tensor window(int64_t begin, int64_t end, double edge) const {
    const Tensor all = at::full({3, end - begin, 5, 4}, edge);
    const int64_t first = std::max<int64_t>(0, begin), last = std::min(end, picture.size(1));
    if (first < last)
      all.narrow(1, first - begin, last - first).copy_(picture.narrow(1, first, last - first));
    return all;
  }
};

TEST_P(SharedRows, BorderIsWhatLiesBesideTheRows) {
  const auto [ranks, count] = GetParam();
  on_ranks(ranks, [&, count = count](comm::Group& group) {
    const Rows rows(count, &group);
    const auto own = rows.own(kScale);
    for (const auto& [above, below] : {std::pair<int64_t, int64_t>{1, 1}, {0, 1}, {1, 0}, {0, 0}}) {
      const Tensor input = at::full({3, above + own.size() + below, 5, 4}, -1.0);
      input.narrow(1, above, own.size()).copy_(picture.narrow(1, own.begin, own.size()));
      rows.fill_border(input, above, below);
      if (own.size() > 0) {
        EXPECT_TRUE(at::equal(input, window(own.begin - above, own.end + below, -1.0)))
            << "rank " << group.rank() << ", border " << above << ", " << below;
      }
    }
  });
}

TEST_P(SharedRows, GatherJoinsThem) {
  const auto [ranks, count] = GetParam();
  on_ranks(ranks, [&, count = count](comm::Group& group) {
    const Rows rows(count, &group);
    const auto own = rows.own(kScale);
    const Tensor mine = picture.narrow(1, own.begin, own.size());
    EXPECT_TRUE(at::equal(rows.gather(mine, 1, kScale), picture));
    const Tensor first = rows.gather_to_first(mine, 1, kScale);
    EXPECT_EQ(first.defined(), group.rank() == 0);
    if (first.defined()) {
      EXPECT_TRUE(at::equal(first, picture));
    }
  });
}

TEST_P(SharedRows, OneRowTravelsOverEachInnerEdge) {
  const auto [ranks, count] = GetParam();
  if (ranks == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  comm::Recorder recorder;
  on_ranks(
      ranks,
      [&, count = count](comm::Group& group) {
        const Rows rows(count, &group);
        rows.fill_border(at::randn({3, 1 + rows.own().size() + 1, 5, 4}), 1, 1);
        rows.fill_border(at::randn({3, rows.own().size() + 1, 5, 4}), 0, 1);
        rows.fill_border(at::randn({3, rows.own().size(), 5, 4}), 0, 0);
      },
      recorder.decorate());
  const int64_t row = 3 * 5 * 4 * 4, working = std::min<int64_t>(ranks, count);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& traffic = recorder.at(rank, "ulysses");
    EXPECT_EQ(traffic.exchanges, 2);
    for (int peer = 0; peer < ranks; ++peer) {
      // Up go the rows for both borders, down the one for the border around.
      const bool both_work = rank < working && peer < working;
      const int64_t rows = !both_work ? 0 : peer == rank - 1 ? 2 : peer == rank + 1 ? 1 : 0;
      EXPECT_EQ(traffic.bytes[static_cast<size_t>(peer)], rows * row) << rank << " to " << peer;
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int ranks : {1, 2, 3, 4, 5, 8})
    for (const int64_t rows : {1, 2, 3, 5, 8, 11}) all.push_back({ranks, rows});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Splits, SharedRows, ::testing::ValuesIn(cases()));

TEST(Rows, WithoutAGroupAllAreOwn) {
  const Rows rows(7);
  EXPECT_EQ(rows.own(8), (comm::Range{0, 56}));
  const Tensor input = at::arange(18).view({1, 3, 3, 2}), before = input.clone();
  rows.fill_border(input, 1, 1);
  EXPECT_TRUE(at::equal(input, before));
  EXPECT_TRUE(rows.gather(input, 1).is_same(input));
  EXPECT_TRUE(rows.gather_to_first(input, 1).is_same(input));
}

TEST(Rows, RefusesAnInputOfOtherRows) {
  on_ranks(2, [](comm::Group& group) {
    const Rows rows(2, &group);
    EXPECT_THROW(rows.fill_border(at::randn({1, 2, 3, 4}), 1, 1), Error);
    EXPECT_THROW(rows.fill_border(at::randn({1, 5, 3, 4}), 2, 2), Error);
  });
}

}  // namespace
}  // namespace orrery
