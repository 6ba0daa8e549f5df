// Real launchers: torchrun from the torch wheel, mpirun from Debian.
#include <gtest/gtest.h>
#include <signal.h>

#include "orrery/base/text.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using testing::Program;

class LauncherTest : public ::testing::Test {
 protected:
  int run(std::vector<std::string> launcher, const std::string& output,
          const std::string& parallel = "") const {
    std::vector<std::string> words = {
        ORRERY_PROGRAM,          "generate", "-p", "a red circle", "--dtype", "float32",
        "--num-inference-steps", "2",        "-o", temp_ / output};
    if (!parallel.empty()) words.insert(words.end(), {"--parallel", parallel});
    launcher.insert(launcher.end(), words.begin(), words.end());
    return Program(launcher, temp_ / "errors").wait();
  }
  static std::vector<std::string> torchrun(const std::string& count) {
    return {ORRERY_PYTHON,      "-m", "torch.distributed.run", "--standalone", "--no-python",
            "--nproc-per-node", count};
  }
  std::string errors() const { return read_file(temp_ / "errors"); }

  testing::TempDir temp_;
};

TEST_F(LauncherTest, TorchrunGivesTheFileOfOneRank) {
  ASSERT_EQ(run({}, "one.mp4"), 0) << errors();
  for (const auto& [count, parallel] : {std::pair("2", "u2"), {"2", "cfg2"}, {"4", "cfg2,u2"}, {"4", "u4"}}) {
    ASSERT_EQ(run(torchrun(count), "many.mp4", parallel), 0) << parallel << ": " << errors();
    EXPECT_TRUE(read_file(temp_ / "many.mp4") == read_file(temp_ / "one.mp4")) << parallel;
  }
}

TEST_F(LauncherTest, MpirunGivesTheFileOfOneRank) {
  ASSERT_EQ(run({}, "one.mp4"), 0) << errors();
  for (const char* parallel : {"u2", "cfg2"}) {
    ASSERT_EQ(run({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"}, "many.mp4", parallel), 0)
        << errors();
    EXPECT_TRUE(read_file(temp_ / "many.mp4") == read_file(temp_ / "one.mp4")) << parallel;
  }
}

}  // namespace
}  // namespace orrery
