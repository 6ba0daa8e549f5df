// When a rank counts as lost, from what the others see of it.
#include "orrery/comm/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::comm {
namespace {

using ::testing::HasSubstr;

constexpr size_t kUlysses = 2, kWorld = 5;

/// Four ranks, cfg2 × ulysses2, that have entered three exchanges of every group and run; seen by rank 0.
View healthy() {
  View view{.self = 0, .shape = {2, 1, 2}, .ranks = std::vector<Peer>(4)};
  for (Peer& peer : view.ranks) {
    peer.status.entered.fill(3);
    peer.status.axis = kUlysses;
    peer.status.exchange = 3;
  }
  return view;
}

void waits(View& view, int rank, size_t axis, int64_t exchange) {
  Status& status = view.ranks[static_cast<size_t>(rank)].status;
  status.activity = Activity::kWaits;
  status.axis = axis;
  status.exchange = status.entered[axis] = exchange;
}

std::string verdict(const View& view) {
  const auto failure = judge(view);
  return failure ? concat(to_string(failure->kind), ": ", failure->message) : "";
}

TEST(Status, IsReadBackAsItWasWritten) {
  Status status{.beat = 7,
                .activity = Activity::kWaits,
                .axis = 4,
                .exchange = 12,
                .entered = {1, 2, 3, 4, 12, 6},
                .failure = {}};
  for (const char* failure : {"", "rank 1 is lost", "two\nlines"}) {
    status.failure = failure;
    const Status read = parse_status(to_string(status));
    EXPECT_EQ(to_string(read), to_string(status));
    EXPECT_EQ(read.failure, failure);
    EXPECT_EQ(read.entered, status.entered);
  }
  EXPECT_EQ(operation(status), "at exchange 12 of group control");
  EXPECT_EQ(operation(Status{}), "before its first exchange");
  for (const char* text : {"", "1 2 3", "1 9 0 0 0 0 0 0 0 0 ", "1 0 6 0 0 0 0 0 0 0 "})
    EXPECT_THROW(parse_status(text), Error) << text;
}

TEST(Judge, LeavesHealthyRanksAlone) {
  View view = healthy();
  EXPECT_EQ(verdict(view), "");
  waits(view, 0, kWorld, 4);  // the others compute
  for (Peer& peer : view.ranks) peer.unchanged = 1000;
  EXPECT_EQ(verdict(view), "");
}

TEST(Judge, AnEndedProcessIsLostUnlessItHadFinishedAndNobodyWaits) {
  View view = healthy();
  view.ranks[3].ended = true;
  EXPECT_EQ(verdict(view),
            "peer: rank 3 is lost: its process has ended; it was last at exchange 3 of group ulysses");
  view.ranks[3].heard = 9;
  view.ranks[3].heard_axis = kWorld;
  EXPECT_THAT(verdict(view), HasSubstr("at exchange 9 of group world"));
  view.ranks[3].status.activity = Activity::kFinished;
  EXPECT_EQ(verdict(view), "");
  waits(view, 0, kUlysses, 4);  // for rank 1
  EXPECT_EQ(verdict(view), "");
  waits(view, 0, kWorld, 4);  // for all
  EXPECT_THAT(verdict(view), HasSubstr("rank 3 is lost"));
}

TEST(Judge, ASilentRankIsLostAfterAWhile) {
  View view = healthy();
  view.ranks[2].silent = 9.9;
  EXPECT_EQ(verdict(view), "");
  view.ranks[2].silent = 10;
  EXPECT_THAT(verdict(view), HasSubstr("peer: rank 2 is lost: no sign of life for 10.0 s"));
  view.ranks[2].status.activity = Activity::kLeft;
  EXPECT_EQ(verdict(view), "");
  waits(view, 0, kWorld, 4);
  EXPECT_THAT(verdict(view), HasSubstr("rank 2 has left while others wait for it"));
}

TEST(Judge, ABrokenConnectionCountsWhenNothingElseExplainsIt) {
  View view = healthy();
  view.ranks[1].suspicion = "Connection closed by peer";
  view.ranks[1].suspected = 1;
  EXPECT_EQ(verdict(view), "");
  view.ranks[1].suspected = 3;
  EXPECT_THAT(verdict(view), HasSubstr("rank 1 is lost: Connection closed by peer; it was last"));
  view.ranks[3].status.failure = "rank 3 failed at exchange 1 of group cfg: disk full";
  EXPECT_EQ(verdict(view), "peer: rank 3 failed at exchange 1 of group cfg: disk full");
}

TEST(Judge, RanksThatWaitForEachOtherAreStuck) {
  View view = healthy();
  waits(view, 0, kWorld, 4);
  waits(view, 1, kUlysses, 4);
  for (const int r : {2, 3}) view.ranks[static_cast<size_t>(r)].status.activity = Activity::kFinished;
  EXPECT_EQ(verdict(view), "") << "it may just have begun";
  for (Peer& peer : view.ranks) peer.unchanged = 3;
  EXPECT_EQ(
      verdict(view),
      "internal: no rank can go on: rank 0 waits at exchange 4 of group world, rank 1 waits at exchange 4 of "
      "group ulysses, rank 2 has finished at exchange 3 of group ulysses, rank 3 has finished at exchange 3 "
      "of group ulysses");
  view.ranks[3].silent = 5;
  EXPECT_EQ(verdict(view), "") << "what rank 3 does is not known";
  view.ranks[3].silent = 0;
  view.ranks[0].status.entered[kUlysses] = 4;  // rank 1's message is under way
  EXPECT_EQ(verdict(view), "");
}

TEST(Judge, ARankThatMakesNoProgressIsNamedWhenTheOwnWaitsForIt) {
  View view = healthy();
  for (Peer& peer : view.ranks) peer.unchanged = 2000;
  EXPECT_EQ(verdict(view), "");
  waits(view, 0, kUlysses, 4);
  EXPECT_EQ(verdict(view),
            "peer: rank 1 lives but has made no progress for 33 min 20 s; it was last at exchange 3 of "
            "group ulysses");
  view.ranks[0].unchanged = 100;  // it waits only since then
  EXPECT_EQ(verdict(view), "");
}

}  // namespace
}  // namespace orrery::comm
