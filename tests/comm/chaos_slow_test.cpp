// Ranks that meet a fault at a random moment, processes that are stopped for ever, and many runs with delays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/comm/rank_parts.h"

namespace orrery::comm::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Three ranks, one of which meets the fault: the others end in time with the code of a lost peer, and name
/// it.
void expect_survivors_end(const std::string& fault, int victim, int at, double within, int port) {
  SCOPED_TRACE(
      concat(fault, " of rank ", victim, " at exchange ", at, port ? ", which serves the store" : ""));
  Launch run("fault", 3, {fault, std::to_string(victim), std::to_string(at), "-1"}, port);
  const double fallen = run.rank(victim).fallen();
  for (int r = 0; r < 3; ++r) {
    if (r == victim) continue;
    const auto end = run.rank(r).end(60);
    EXPECT_EQ(end.code, 6) << end.said;
    EXPECT_THAT(end.said, AllOf(HasSubstr(concat("loss: rank ", victim, " ")), HasSubstr(" of group world"),
                                HasSubstr(concat("peer: rank ", victim, " "))));
    EXPECT_LT(end.seconds - fallen, within);
  }
}

TEST(Chaos, AStoppedRankIsNamedAndTheOthersEndInTwelveSeconds) {
  expect_survivors_end("stop", 1, 50, 12, 0);
  expect_survivors_end("stop", 2, 20, 12, free_port());
}

TEST(Chaos, AStoppedRankMayServeTheStore) { expect_survivors_end("stop", 0, 50, 12, free_port()); }

TEST(Chaos, ARankThatHasFinishedDoesNotWaitForAStoppedOneForEver) {
  Launch run("late stop", 2);
  const auto end = run.rank(0).end(30);
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.said, "finished\n");
  EXPECT_LT(end.seconds, 15);
}

TEST(Chaos, AnyRankMayMeetAnyFaultAtAnyMoment) {
  std::mt19937 random(4);
  for (int i = 0; i < 20; ++i) {
    const int victim = static_cast<int>(random() % 3), at = 2 + static_cast<int>(random() % 300);
    const char* faults[] = {"kill", "throw", "exit"};
    expect_survivors_end(faults[random() % 3], victim, at, 5, random() % 2 ? free_port() : 0);
  }
}

TEST(Chaos, DelaysChangeNoBitInManyRuns) {
  for (const auto& shape : {MeshShape{1, 1, 2}, MeshShape{2, 1, 2}}) {
    Launch run("exchanges", shape.size(), {std::to_string(shape.cfg), "1", "2", "5000", "200", "200"});
    for (const auto& end : run.ends(300)) EXPECT_EQ(end.said, "same bits\n");
  }
}

}  // namespace
}  // namespace orrery::comm::testing

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--rank") return orrery::comm::testing::main(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
