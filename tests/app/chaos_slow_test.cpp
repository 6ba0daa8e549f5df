// Random ranks of real runs meet random faults at random moments. ORRERY_CHAOS says how many (20);
// bench/chaos runs 200.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include "orrery/base/clock.h"
#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using testing::children;
using testing::Program;

struct Fault {
  const char* name;
  int signal;
  double within;  // seconds from the fault to the end of the last process
};
constexpr Fault kFaults[] = {{"SIGKILL", SIGKILL, 5}, {"SIGSTOP", SIGSTOP, 12}, {"SIGINT", SIGINT, 5}};

constexpr std::pair<const char*, int> kPlans[] = {
    {"u2", 2}, {"cfg2", 2}, {"r2", 2}, {"u3", 3}, {"cfg2,u2", 4}};

TEST(Chaos, NoHangNoOrphanNoIncompleteFileAndTheRankIsNamed) {
  const char* wanted = std::getenv("ORRERY_CHAOS");
  const int count = wanted ? std::atoi(wanted) : 20;
  std::mt19937 random(20);
  double longest[std::size(kFaults)] = {};
  for (int i = 0; i < count; ++i) {
    const auto& fault = kFaults[random() % std::size(kFaults)];
    const auto& [parallel, ranks] = kPlans[random() % std::size(kPlans)];
    const auto victim = static_cast<size_t>(random() % ranks);
    const auto after = std::chrono::milliseconds(random() % 4000);
    SCOPED_TRACE(concat("run ", i, ": ", fault.name, " of rank ", victim, " of ", parallel, " after ",
                        after.count(), " ms"));
    const testing::TempDir temp;
    Program program({ORRERY_PROGRAM, "generate", "-p", "a red circle", "--launch", "processes", "--parallel",
                     parallel, "--num-inference-steps", "1000", "-o", temp / "clip.mp4"},
                    temp / "errors");
    while (children(program.pid()).size() < static_cast<size_t>(ranks)) usleep(1000);
    const auto pids = children(program.pid());
    std::this_thread::sleep_for(after);
    kill(pids[victim], fault.signal);
    const Stopwatch watch;
    const int code = program.wait();
    auto& most = longest[&fault - kFaults];
    most = std::max(most, watch.seconds());
    EXPECT_LT(watch.seconds(), fault.within);
    for (const pid_t pid : pids) EXPECT_NE(kill(pid, 0), 0) << "an orphan";
    EXPECT_FALSE(fs::exists(temp / "clip.mp4"));
    const std::string errors = read_file(temp / "errors");
    // An interrupt that comes before the program listens for it is a death like any other.
    const bool cancelled = fault.signal == SIGINT && code == 130;
    EXPECT_TRUE(cancelled || code == 6) << code;
    EXPECT_TRUE(cancelled || errors.find(concat("rank ", victim, " ")) != std::string::npos) << errors;
  }
  for (const auto& fault : kFaults)
    std::cout << fault.name << ": at most " << human_seconds(longest[&fault - kFaults]) << " to the end\n";
}

}  // namespace
}  // namespace orrery
