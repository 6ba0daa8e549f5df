// Ranks that are processes: exchanges, disagreements, failures, meeting.
#include "orrery/comm/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/comm/rank_parts.h"
#include "tests/support/expect_error.h"

namespace orrery::comm::testing {
namespace {

using orrery::testing::expect_error;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Exchanges : ::testing::TestWithParam<MeshShape> {};

TEST_P(Exchanges, GiveTheBitsOfThreadRanks) {
  const MeshShape shape = GetParam();
  Launch run("exchanges", shape.size(),
             {std::to_string(shape.cfg), std::to_string(shape.ring), std::to_string(shape.ulysses), "100",
              "10", "0"});
  for (const auto& end : run.ends()) {
    EXPECT_EQ(end.code, 0);
    EXPECT_EQ(end.said, "same bits\n");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Exchanges,
                         ::testing::Values(MeshShape{1, 1, 1}, MeshShape{1, 1, 2}, MeshShape{1, 3, 1},
                                           MeshShape{2, 1, 2}, MeshShape{1, 2, 2}),
                         [](const auto& test) {
                           return concat("c", test.param.cfg, "r", test.param.ring, "u", test.param.ulysses);
                         });

TEST(Processes, DelaysChangeNoBit) {
  Launch run("exchanges", 3, {"1", "1", "3", "1000", "30", "300"});
  for (const auto& end : run.ends()) EXPECT_EQ(end.said, "same bits\n");
}

TEST(Processes, TwoRunsAtOnceDoNotMeet) {
  const int port = free_port();
  Launch launched("exchanges", 2, {"1", "1", "2", "1", "5", "0"}),
      alone("exchanges", 2, {"1", "1", "2", "2", "5", "0"}, port);
  for (auto* run : {&launched, &alone})
    for (const auto& end : run->ends()) EXPECT_EQ(end.said, "same bits\n");
}

/// Every rank's end after a disagreement.
std::vector<RankProcess::End> ends_of(const std::string& way, int size = 3) {
  Launch run("disagreement", size, {way});
  return run.ends(30);
}

TEST(Processes, MismatchedExtentsNameBothRanksAndEndEveryRank) {
  for (const auto& [way, other] :
       {std::pair{"extents", "[Float [4000, 2]]"}, std::pair{"type", "[Int [3, 2]]"}}) {
    const auto ends = ends_of(way);
    int internal = 0;
    for (const auto& end : ends) {
      EXPECT_THAT(end.said, AllOf(ContainsRegex("rank 1 sends|to rank 1, which"), HasSubstr(other),
                                  HasSubstr("[Float [3, 2]]")));
      EXPECT_TRUE(end.code == 70 || end.code == 6) << end.code;
      internal += end.code == 70;
    }
    EXPECT_GE(internal, 1);
  }
}

TEST(Processes, RanksThatWaitForEachOtherInDifferentOrderAreToldSo) {
  for (const auto& end : ends_of("order", 2))
    EXPECT_THAT(end.said, AllOf(HasSubstr("no rank can go on: rank 0 waits at exchange 1 of group world"),
                                HasSubstr("rank 1 waits at exchange 1 of group sequence")));
}

TEST(Processes, ARankThatEndsEarlyIsNamed) {
  const auto ends = ends_of("end");
  EXPECT_EQ(ends[1].code, 0);
  for (const int r : {0, 2})
    EXPECT_THAT(ends[static_cast<size_t>(r)].said,
                AllOf(HasSubstr("peer: rank 1"), HasSubstr("before its first exchange")));
}

TEST(Processes, ADifferentRequestIsRefusedByAll) {
  for (const auto& end : ends_of("request")) {
    EXPECT_EQ(end.code, 2);
    EXPECT_EQ(end.said,
              "request: the ranks of a run must have the same request: rank 1 differs from rank 0\n");
  }
  for (const auto& end : ends_of("same")) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(Processes, AnErrorOfOneRankEndsAllWithItsKind) {
  const auto ends = ends_of("error");
  EXPECT_EQ(ends[0].said, "checkpoint: rank 1: no file 1\n");
  EXPECT_EQ(ends[1].said, "checkpoint: no file 1\n");
  EXPECT_EQ(ends[2].said, "checkpoint: rank 1: no file 1\n");
  for (const auto& end : ends) EXPECT_EQ(end.code, 3);
}

/// Starts three ranks of which `victim` meets the fault; checks that the others end in time and name it.
void expect_survivors_end(const std::string& fault, int victim, int at, int busy, double within,
                          const std::string& part, int port = 0) {
  Launch run("fault", 3, {fault, std::to_string(victim), std::to_string(at), std::to_string(busy)}, port);
  const double fallen = run.rank(victim).fallen();
  for (int r = 0; r < 3; ++r) {
    if (r == victim) continue;
    const auto survivor = run.rank(r).end(30);
    EXPECT_EQ(survivor.code, 6) << survivor.said;
    EXPECT_THAT(survivor.said, AllOf(HasSubstr(concat("loss: rank ", victim, part)),
                                     HasSubstr(concat("at exchange ", at - 1, " of group world"))));
    if (r != busy) {
      EXPECT_THAT(survivor.said, HasSubstr(concat("peer: rank ", victim, part)));
    }
    EXPECT_LT(survivor.seconds - fallen, within) << survivor.said;
  }
}

TEST(Processes, AKilledRankIsNamedAndTheOthersEnd) {
  expect_survivors_end("kill", 1, 80, -1, 5, " is lost: its process has ended");
}

TEST(Processes, AKilledRankEndsOthersInsideALongKernel) {
  expect_survivors_end("kill", 2, 5, 0, 5, " is lost: its process has ended");
}

TEST(Processes, TheRankThatServesTheStoreMayDieToo) {
  expect_survivors_end("kill", 0, 40, -1, 5, " is lost: its process has ended", free_port());
}

TEST(Processes, ARankThatThrowsIsNamedWithTheReason) {
  expect_survivors_end("throw", 2, 5, 1, 5, " failed at exchange 4 of group world: out of memory");
}

TEST(Processes, ARankThatThrowsMayServeTheStore) {
  expect_survivors_end("throw", 0, 30, -1, 5, " failed at exchange 29 of group world: out of memory",
                       free_port());
}

TEST(Processes, ARankThatJustEndsIsLost) {
  expect_survivors_end("exit", 1, 30, -1, 5, " is lost: its process has ended");
}

TEST(Processes, ARankThatLivesWithoutProgressIsNamedToThoseWhoWaitForIt) {
  Launch run("idle", 2);
  for (const auto& end : run.ends(30)) {
    EXPECT_EQ(end.code, 6);
    EXPECT_THAT(end.said,
                ContainsRegex("loss: rank 1 lives but has made no progress for [23].* s; it was last "));
  }
}

TEST(Join, ARunOfOneNeedsNoStore) {
  const Mesh mesh = make_process_mesh(join({}), {});
  EXPECT_EQ(mesh.size(), 1);
  EXPECT_EQ(mesh.world().size(), 1);
  mesh.fail("nobody hears it");
  mesh.finish();
}

TEST(Join, GivesOneMesh) {
  const auto processes = join({});
  const Mesh mesh = make_process_mesh(processes, {});
  expect_error(ErrorKind::kInternal, "has one mesh", [&] { make_process_mesh(processes, {}); });
}

TEST(Join, RefusesPlacesThatCannotBe) {
  const auto refused = [](const Place& place, const std::string& part) {
    expect_error(ErrorKind::kRequest, part, [&] { join(place); });
  };
  refused({.rank = 2, .size = 2, .port = 1}, "rank 2 of 2 is none: expected 0 to 1");
  refused({.rank = -1, .size = 2, .port = 1}, "rank -1 of 2");
  refused({.rank = 0, .size = 2, .port = 0}, "need a port from 1 to 65535");
  refused({.rank = 0, .size = 2, .port = 70000}, "got 70000");
  refused({.rank = 0, .size = 2, .local_rank = 1, .port = 1}, "local rank 1 of 1 is none");
  expect_error(ErrorKind::kRequest, "a mesh of cfg1 × ring1 × ulysses2 needs 2 processes, there are 1", [] {
    make_process_mesh(join({}), {1, 1, 2});
  });
}

TEST(Join, NamesTheAddressThatDoesNotAnswerAndTheRanksThatAreMissing) {
  Watch hurry;
  hurry.join = std::chrono::milliseconds(300);
  const int port = free_port();
  expect_error(ErrorKind::kPeer, concat("cannot reach the store of this run at 127.0.0.1:", port),
               [&] { join({.rank = 1, .size = 2, .port = port}, hurry); });
  expect_error(ErrorKind::kPeer, concat("these ranks of 4 have not come to 127.0.0.1:", port, ": 1, 2, 3"),
               [&] { join({.rank = 0, .size = 4, .port = port}, hurry); });
}

TEST(Join, RefusesTheStoreOfAnotherRun) {
  StoreServer server;
  Watch hurry;
  hurry.join = std::chrono::milliseconds(200);
  const Place place{.rank = 1, .size = 2, .port = server.port(), .store_elsewhere = true};
  expect_error(ErrorKind::kPeer, "have not come", [&] { join(place, hurry); });
  expect_error(ErrorKind::kResource, "belongs to a run of 2 processes, this one is of 3", [&] {
    Place other = place;
    other.size = 3;
    join(other, hurry);
  });
  Role role{.part = "join", .place = place, .arguments = {}};
  orrery::testing::TempDir folder;
  const auto end = RankProcess(role, folder / "said").end(30);
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.said, HasSubstr("is used by another run, which has a rank 1 already"));
  expect_error(ErrorKind::kResource, concat("at port ", server.port(), " (does another run use it?)"),
               [&] { join({.rank = 0, .size = 2, .port = server.port()}, hurry); });
}

TEST(StoreServer, KnowsTheLastOperationOfADeadRank) {
  Launch run("fault", 2, {"kill", "1", "300", "-1"});
  run.ends();
  EXPECT_THAT(*run.server().last_operation(1), ::testing::MatchesRegex("at exchange [0-9]+ of group world"));
  EXPECT_FALSE(run.server().last_operation(2));
}

}  // namespace
}  // namespace orrery::comm::testing

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--rank") return orrery::comm::testing::main(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
