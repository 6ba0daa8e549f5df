// What spellings alone do not show (tests/cases/parallel.case has those): the node's size, chunks of heads.
#include "orrery/config/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"

namespace orrery::config {
namespace {

using ::testing::ElementsAre;

std::string resolved(int64_t ranks, int64_t node_ranks, const std::string& parallel = "auto") {
  Plan plan;
  plan.ranks = ranks, plan.parallel = parallel;
  return to_string(resolve(plan, node_ranks));
}

TEST(Resolve, KeepsUlyssesInsideANodeAndRingsAcross) {
  EXPECT_EQ(resolved(8, 8), "cfg2,u4,r1");
  EXPECT_EQ(resolved(16, 8), "cfg2,u8,r1");
  EXPECT_EQ(resolved(32, 8), "cfg2,u8,r2");
  EXPECT_EQ(resolved(24, 8), "cfg2,u4,r3") << "six ranks of twelve would not lie in nodes of eight";
  EXPECT_EQ(resolved(9, 3), "cfg1,u3,r3");
  EXPECT_EQ(resolved(5, 2), "cfg1,u1,r5");
  EXPECT_EQ(resolved(32, 0), "cfg2,u16,r1");
  EXPECT_EQ(resolved(32, 8, "u16"), "cfg2,u16,r1") << "the node is a preference, not a limit";
}

TEST(Resolve, EveryFactorisationCanBeAskedForAndComesBack) {
  for (int64_t cfg = 1; cfg <= 2; ++cfg)
    for (int64_t ulysses = 1; ulysses <= 8; ++ulysses)
      for (int64_t ring = 1; cfg * ulysses * ring <= 8; ++ring) {
        const Factors factors{cfg, ulysses, ring};
        Plan plan;
        plan.parallel = to_string(factors);
        EXPECT_EQ(resolve(plan), factors) << *plan.parallel;
        plan.ranks = factors.ranks();
        EXPECT_EQ(resolve(plan, 2), factors) << *plan.parallel;
      }
}

std::vector<std::string> candidates(const std::string& cut, const std::string& overlap) {
  Plan plan;
  plan.alltoall_cut = cut, plan.alltoall_overlap = overlap;
  std::vector<std::string> names;
  for (const Chunks& chunks : alltoall_candidates(plan)) names.push_back(to_string(chunks));
  return names;
}

TEST(AlltoallCandidates, AutoTriesAndNumbersDecide) {
  EXPECT_EQ(Plan{}.alltoall_cut, "auto");
  EXPECT_EQ(Plan{}.alltoall_overlap, "auto");
  EXPECT_THAT(candidates("auto", "auto"), ElementsAre("off", "cut 2", "overlap 2", "overlap 4"));
  EXPECT_THAT(candidates("0", "auto"), ElementsAre("off", "overlap 2", "overlap 4"));
  EXPECT_THAT(candidates("auto", "1"), ElementsAre("off", "cut 2"));
  EXPECT_THAT(candidates("0", "1"), ElementsAre("off"));
  EXPECT_THAT(candidates("auto", "3"), ElementsAre("overlap 3"));
  EXPECT_THAT(candidates("1", "3"), ElementsAre("overlap 3"));
  EXPECT_THAT(candidates("3", "5"), ElementsAre("cut 3")) << "cut wins";
  for (const char* word : {"", "2.5", "-1", "1025", "Auto"}) EXPECT_THROW(candidates(word, "auto"), Error);
}

}  // namespace
}  // namespace orrery::config
