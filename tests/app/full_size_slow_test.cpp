// Commands that read headers only, on a checkpoint of the published size. tools/sparse_checkpoint.py writes
// it in a moment: the files have their true length, but their data are holes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "orrery/base/clock.h"
#include "orrery/base/text.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Program;

class FullSizeTest : public ::testing::Test {
 protected:
  static constexpr double kSeconds = 1;
  static constexpr int kTries = 3;  // of which the best counts: other programs run, too

  void SetUp() override {
    Program tool({ORRERY_PYTHON, ORRERY_SOURCE_DIR "/tools/sparse_checkpoint.py", model()}, temp_ / "errors");
    ASSERT_EQ(tool.wait(), 0) << read_file(temp_ / "errors");
  }

  std::string model() const { return temp_ / "model"; }

  /// What the command prints, within the time that it may take.
  std::string printed(std::vector<std::string> words) const {
    words.insert(words.begin(), ORRERY_PROGRAM);
    std::string text;
    double best = INFINITY;
    for (int i = 0; i < kTries; ++i) {
      text.clear();
      const Stopwatch watch;
      Program program(words, temp_ / "errors");
      while (const auto line = program.line()) text += *line + "\n";
      EXPECT_EQ(program.wait(), 0) << read_file(temp_ / "errors");
      best = std::min(best, watch.seconds());
    }
    EXPECT_LT(best, kSeconds) << words[1];
    std::cout << words[1] << ": " << best << " s\n";
    return text;
  }

  testing::TempDir temp_;
};

TEST_F(FullSizeTest, TakesNoDisk) {
  int64_t length = 0, stored = 0;
  for (const auto& entry : fs::recursive_directory_iterator(model())) {
    if (!entry.is_regular_file()) continue;
    struct stat status = {};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    length += status.st_size, stored += status.st_blocks * 512;
  }
  EXPECT_GT(length, 57'000'000'000);
  EXPECT_LT(stored, 10'000'000);
}

TEST_F(FullSizeTest, IsInspectedInASecond) {
  EXPECT_THAT(printed({"inspect", model()}),
              AllOf(HasSubstr("20430.4 million parameters, 60 blocks of 3072 (24 heads x 128); 1933 tensors"),
                    HasSubstr("7070.6 million parameters, 28 layers of 3584; 729 tensors"),
                    HasSubstr("40.9 GB mapped, 81.7 GB widened to float32")));
}

TEST_F(FullSizeTest, IsPlannedInASecond) {
  const std::string text = printed({"plan", "--model", model(), "--ranks", "8", "--dtype", "float32"});
  EXPECT_THAT(text, HasSubstr("4096 tokens, 60 blocks of 24 heads, float32; weights 81.7 GB"));
  for (const char* plan : {"cfg2,u4,r1", "cfg1,u8,r1", "cfg1,u1,r8"}) EXPECT_THAT(text, HasSubstr(plan));
}

}  // namespace
}  // namespace orrery
