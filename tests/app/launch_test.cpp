// Ranks that are processes: started by the program itself, and by hand as a launcher would.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/app/session.h"
#include "orrery/base/clock.h"
#include "orrery/base/text.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::children;
using testing::Program;
using Variables = std::map<std::string, std::string>;

class LaunchTest : public ::testing::Test {
 protected:
  static std::vector<std::string> words(const std::string& output,
                                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {
        ORRERY_PROGRAM,          "generate", "-p", "a red circle", "--dtype", "float32",
        "--num-inference-steps", "2",        "-W", "80",           "-H",      "48",
        "--num-frames",          "5",        "-o", output};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::string errors(const std::string& of = "errors") const { return read_file(temp_ / of); }

  Program start(const std::vector<std::string>& all, const Variables& variables = {},
                const std::string& errors = "errors") const {
    return Program(all, temp_ / errors, variables);
  }

  /// The file of one rank.
  std::string one_rank() const {
    EXPECT_EQ(start(words(temp_ / "one.mp4")).wait(), 0) << errors();
    return read_file(temp_ / "one.mp4");
  }

  /// All ranks by hand, with different words where wanted; their exit codes. stderr of rank r: "errors<r>".
  std::vector<int> by_hand(const std::vector<std::vector<std::string>>& ranks, const Variables& common,
                           const char* rank_name) const {
    std::vector<Program> programs;
    for (size_t r = 0; r < ranks.size(); ++r) {
      Variables variables = common;
      variables[rank_name] = std::to_string(r);
      programs.push_back(start(ranks[r], variables, "errors" + std::to_string(r)));
    }
    std::vector<int> codes;
    for (auto& program : programs) codes.push_back(program.wait());
    return codes;
  }

  std::vector<std::string> made() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(temp_.path()))
      if (const std::string name = entry.path().filename(); !name.starts_with("errors"))
        names.push_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }

  testing::TempDir temp_;
};

TEST_F(LaunchTest, ProcessesGiveTheFileOfOneRank) {
  const std::string wanted = one_rank();
  for (const char* parallel : {"u2", "cfg2", "u3", "cfg2,u2"}) {
    auto program = start(words(temp_ / "many.mp4", {"--launch", "processes", "--parallel", parallel}));
    ASSERT_EQ(program.wait(), 0) << parallel << ": " << errors();
    EXPECT_TRUE(read_file(temp_ / "many.mp4") == wanted) << parallel;
    const Json record = Json::parse(read_file(temp_ / "many.json"));
    EXPECT_EQ(record["plan"]["launch"], "processes");
    fs::remove(temp_ / "many.mp4");
  }
  EXPECT_EQ(made(), (std::vector<std::string>{"many.json", "one.json", "one.mp4"}));
}

TEST_F(LaunchTest, WithoutGuidanceAllRanksShareTheOneBranch) {
  EXPECT_EQ(start(words(temp_ / "one.mp4", {"--guidance", "0"})).wait(), 0) << errors();
  EXPECT_EQ(
      start(words(temp_ / "many.mp4", {"--guidance", "0", "--launch", "processes", "--parallel", "cfg2,u2"}))
          .wait(),
      0)
      << errors();
  EXPECT_NE(errors().find("all 4 ranks share the sequence"), std::string::npos) << errors();
  EXPECT_TRUE(read_file(temp_ / "many.mp4") == read_file(temp_ / "one.mp4"));
}

TEST_F(LaunchTest, SlurmsEnvironmentSetByHand) {
  const std::string wanted = one_rank();
  const auto all = words(temp_ / "many.mp4", {"--json"});
  const auto codes = by_hand({all, all}, {{"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}}, "SLURM_PROCID");
  EXPECT_EQ(codes, (std::vector<int>{0, 0})) << errors("errors0") << errors("errors1");
  EXPECT_TRUE(read_file(temp_ / "many.mp4") == wanted);
  EXPECT_EQ(errors("errors1"), "") << "only rank 0 prints";
}

TEST_F(LaunchTest, VerifyComparesWithOneRank) {
  for (const char* launch : {"threads", "processes"}) {
    auto all = words(temp_ / "x.mp4", {"--parallel", "cfg2,u2", "--launch", launch, "--quiet"});
    all[1] = "verify";
    auto program = start(all);
    std::string table;
    while (const auto line = program.line()) table += *line + "\n";
    EXPECT_EQ(program.wait(), 0) << errors();
    for (const char* stage : {"text  ", "block 1 ", "step 2 ", "pixels 1 ", "latents ", "frames "}) {
      const size_t at = table.find(stage);
      ASSERT_NE(at, std::string::npos) << stage << " in " << table;
      EXPECT_NE(table.substr(at, table.find('\n', at) - at).find("identical"), std::string::npos) << table;
    }
  }
  EXPECT_TRUE(made().empty());
}

TEST_F(LaunchTest, PlanListsEveryFactorisation) {
  auto program = start({ORRERY_PROGRAM, "plan", "--ranks", "6", "--json", "--dtype", "float32"});
  std::string text;
  while (const auto line = program.line()) text += *line + "\n";
  ASSERT_EQ(program.wait(), 0) << errors();
  const Json plan = Json::parse(text);
  EXPECT_EQ(plan["chosen"], "cfg2,u3,r1");
  ASSERT_EQ(plan["plans"].size(), 6u);
  // 6 blocks, 120 tokens, 4 heads of 32: the busiest is a rank with 1 head, which sends q, k and v of 3; then
  // 40 tokens of 64 values, the velocity of [16, 5, 8, 12] and a decision.
  const int64_t most = 6 * (3 * 40 * 3 + 2 * 40 * 1) * 32 * 4 + 2 * 40 * 64 * 4 + 16 * 5 * 8 * 12 * 4 + 5 * 8;
  EXPECT_EQ(plan["plans"][0]["bytes_per_step"], most);
  EXPECT_EQ(plan["plans"][0]["exchanges_per_step"], 6 * 2 + 3);
}

TEST_F(LaunchTest, RanksThatWereAskedForDifferentThingsAreRefused) {
  const Variables common = {{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "20011"}};
  const auto refuse = [&](const std::string& what, const std::vector<std::string>& more) {
    const auto codes = by_hand({words(temp_ / "x.mp4"), words(temp_ / "x.mp4", more)}, common, "RANK");
    EXPECT_EQ(codes, (std::vector<int>{2, 2})) << what;
    EXPECT_NE(errors("errors0").find("the same " + what + ": rank 1 differs"), std::string::npos)
        << errors("errors0");
    EXPECT_EQ(errors("errors1"), "") << "only rank 0 prints";
  };
  refuse("request", {"--seed", "5"});
  refuse("plan", {"--alltoall-cut", "2"});
  EXPECT_TRUE(made().empty());
}

TEST_F(LaunchTest, AnErrorOfOneRankIsToldByRankZero) {
  std::ofstream(temp_ / "only_here.txt") << "a red circle";
  const auto prompt = [&](const char* name) {
    return words(temp_ / "x.mp4", {"--negative-prompt-file", temp_ / name});
  };
  const auto codes =
      by_hand({prompt("only_here.txt"), prompt("not_there.txt")},
              {{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "20012"}}, "RANK");
  EXPECT_EQ(codes, (std::vector<int>{2, 2}));
  EXPECT_NE(errors("errors0").find("rank 1: "), std::string::npos) << errors("errors0");
  EXPECT_NE(errors("errors0").find("not_there.txt"), std::string::npos) << errors("errors0");
  EXPECT_EQ(made(), (std::vector<std::string>{"only_here.txt"}));
}

TEST_F(LaunchTest, EnvironmentsThatContradictThePlanAreRefused) {
  const Variables two = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "20013"}};
  EXPECT_EQ(start(words(temp_ / "x.mp4", {"--ranks", "4"}), two).wait(), 2);
  EXPECT_NE(errors().find("expected 2, as many processes as have been started together, found 4"),
            std::string::npos)
      << errors();
  EXPECT_EQ(start(words(temp_ / "x.mp4"), {{"RANK", "2"}, {"WORLD_SIZE", "2"}}).wait(), 2);
  EXPECT_NE(errors().find("RANK is 2, but WORLD_SIZE is 2"), std::string::npos) << errors();
}

/// A run of three processes that has made its first steps.
class LossTest : public LaunchTest {
 protected:
  Program running() const {
    auto program = start(words(temp_ / "clip.mp4", {"--launch", "processes", "--parallel", "u3", "--json",
                                                    "--num-inference-steps", "1000"}));
    for (int64_t step = 0; step < 2;) {
      const auto line = program.line();
      if (!line) throw std::runtime_error(errors());
      const Json event = Json::parse(*line);
      if (event["event"] == "step" && event["stage"] == "denoise") step = event["step"];
    }
    return program;
  }

  /// Exit code and seconds to the end; nothing may be left behind.
  int end(Program& program, double at_most) const {
    const auto ranks = children(program.pid());
    EXPECT_LE(ranks.size(), 3u);
    const Stopwatch watch;
    const int code = program.wait();
    EXPECT_LT(watch.seconds(), at_most);
    for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0) << "an orphan";
    EXPECT_TRUE(made().empty());
    return code;
  }
};

TEST_F(LossTest, AKilledRankIsNamedAndTheOthersEnd) {
  auto program = running();
  const auto ranks = children(program.pid());
  ASSERT_EQ(ranks.size(), 3u);
  kill(ranks[1], SIGKILL);
  EXPECT_EQ(end(program, 5), 6);
  EXPECT_NE(errors().find("rank 1 was killed by signal 9 (Killed); when last heard of it was "),
            std::string::npos)
      << errors();
}

TEST_F(LossTest, AnInterruptOfTheLauncherOrOfOneRankStopsAllWithinAStep) {
  for (const bool one : {false, true}) {
    auto program = running();
    const auto ranks = children(program.pid());
    ASSERT_EQ(ranks.size(), 3u);
    kill(one ? ranks[2] : program.pid(), SIGINT);
    EXPECT_EQ(end(program, 5), 130);
    EXPECT_NE(errors().find("cancelled at step"), std::string::npos) << errors();
  }
}

TEST_F(LossTest, RanksDieWithTheirParent) {
  auto program = running();
  const auto ranks = children(program.pid());
  ASSERT_EQ(ranks.size(), 3u);
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  const Stopwatch watch;
  while (std::any_of(ranks.begin(), ranks.end(), [](pid_t p) { return kill(p, 0) == 0; }) &&
         watch.seconds() < 5)
    usleep(10'000);
  EXPECT_LT(watch.seconds(), 5);
}

TEST(EndIfStuck, EndsTheProcessUnlessTheOthersStopInTime) {
  const Error error(ErrorKind::kInternal, "rank 2 failed at exchange 7 of group ulysses: boom");
  { app::EndIfStuck(60).after(error); }
  EXPECT_EXIT(
      {
        app::EndIfStuck stuck(0.1);
        stuck.after(error);
        sleep(60);
      },
      ::testing::ExitedWithCode(70), "rank 2 failed at exchange 7 of group ulysses: boom");
}

}  // namespace
}  // namespace orrery
