// The program itself, as a shell starts it.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/base/text.h"
#include "orrery/media/read.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Program;

class ProcessTest : public ::testing::Test {
 protected:
  std::string errors() const { return read_file(temp_ / "errors"); }
  Program start(std::vector<std::string> words) const {
    words.insert(words.begin(), ORRERY_PROGRAM);
    return Program(words, temp_ / "errors");
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(temp_.path()))
      if (entry.path().filename() != "errors") names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  testing::TempDir temp_;
};

TEST_F(ProcessTest, MakesAVideoWithItsRecordBeside) {
  auto program = start({"generate", "-p", "a red circle", "--num-inference-steps", "2", "--ranks", "2", "-o",
                        temp_ / "clip.mp4"});
  ASSERT_EQ(program.wait(), 0) << errors();
  EXPECT_EQ(files(), (std::vector<std::string>{"clip.json", "clip.mp4"}));
  EXPECT_EQ(media::read_frames(temp_ / "clip.mp4").count, 17);
  const Json record = Json::parse(read_file(temp_ / "clip.json"));
  EXPECT_EQ(record["request"]["prompt"], "a red circle");
  EXPECT_EQ(record["plan"]["ranks"], 2);
}

TEST_F(ProcessTest, AnInterruptStopsWithinAStepAndLeavesNothing) {
  for (const int number : {SIGINT, SIGTERM}) {
    auto program = start({"generate", "-p", "a red circle", "--num-inference-steps", "1000", "--ranks", "2",
                          "--json", "-o", temp_ / "clip.mp4"});
    int64_t step = 0;
    while (step < 2) {
      const auto line = program.line();
      ASSERT_TRUE(line) << errors();
      const Json event = Json::parse(*line);
      if (event["event"] == "step" && event["stage"] == "denoise") step = event["step"];
    }
    program.signal(number);
    EXPECT_EQ(program.wait(), 130);
    EXPECT_NE(errors().find("cancelled at step"), std::string::npos) << errors();
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(ProcessTest, ABatchGoesOnAfterABadSample) {
  std::ofstream(temp_ / "samples.jsonl")
      << R"({"name": "good", "inference_type": "text2world", "prompt": "a red circle", "num_steps": 1})"
      << "\n"
      << R"({"name": "bad", "inference_type": "image2world", "prompt": "x", "input_path": "none.png", "num_steps": 1})"
      << "\n"
      << R"({"name": "also_good", "inference_type": "text2world", "prompt": "a blue square", "num_steps": 1})"
      << "\n";
  EXPECT_EQ(start({"generate", "-i", temp_ / "samples.jsonl", "-o", temp_ / "out"}).wait(), 2);
  EXPECT_NE(errors().find("none.png"), std::string::npos) << errors();
  for (const char* made : {"good.mp4", "good.json", "also_good.mp4", "also_good.json"})
    EXPECT_TRUE(fs::exists(temp_.path() / "out" / made)) << made;
  EXPECT_FALSE(fs::exists(temp_.path() / "out/bad.mp4"));

  fs::remove_all(temp_.path() / "out");
  EXPECT_EQ(start({"generate", "-i", temp_ / "samples.jsonl", "-o", temp_ / "out", "--no-keep-going"}).wait(),
            2);
  EXPECT_FALSE(fs::exists(temp_.path() / "out/good.mp4"))
      << "every sample is checked before the first is made";
}

TEST_F(ProcessTest, ErrorsAreOneLineAndAnExitCode) {
  const auto refuse = [&](int code, const std::string& part, const std::vector<std::string>& words) {
    EXPECT_EQ(start(words).wait(), code) << part;
    const std::string text = errors();
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  };
  refuse(2, "nearest: 96", {"generate", "-p", "x", "-W", "100"});
  refuse(2, "did you mean --prompt?", {"generate", "--promt", "x"});
  refuse(3, "/none", {"generate", "-m", "/none", "-p", "x"});
  refuse(2, "/dev/null", {"generate", "-p", "x", "-o", "/dev/null/x.mp4"});
}

}  // namespace
}  // namespace orrery
