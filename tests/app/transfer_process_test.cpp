// Cosmos-Transfer by the program itself: processes, official sample files, a kill and what comes after it.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "orrery/base/text.h"
#include "orrery/media/read.h"
#include "orrery/media/write.h"
#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using testing::golden_root;
using testing::Json;
using testing::Program;

class TransferProcessTest : public ::testing::Test {
 protected:
  TransferProcessTest() {
    media::Frames clip{21, 32, 48, {}};
    for (int64_t f = 0; f < clip.count; ++f)
      for (int64_t i = 0; i < clip.frame_bytes(); ++i)
        clip.rgb.push_back(static_cast<uint8_t>(i / 3 % 48 > f + 9 ? 220 : 40 + f));
    media::write_video(temp_ / "in.mkv", clip, 16);
    write_file(temp_ / "car.json", Json{{"name", "car"},
                                        {"prompt", "a car"},
                                        {"negative_prompt", "blurry"},
                                        {"video_path", "in.mkv"},
                                        {"num_steps", kSteps},
                                        {"num_video_frames_per_chunk", 9},
                                        {"edge", {{"preset_edge_threshold", "low"}}}}
                                       .dump());
  }

  /// The sample at its model's size; more words win.
  Program start(const std::string& folder, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {ORRERY_PROGRAM,
                                      "generate",
                                      "-m",
                                      golden_root() / "pipelines/cosmos_transfer",
                                      "-i",
                                      temp_ / "car.json",
                                      "-o",
                                      temp_ / folder,
                                      "-W",
                                      "48",
                                      "-H",
                                      "32",
                                      "--max-sequence-length",
                                      "16",
                                      "--dtype",
                                      "float32",
                                      "--json",
                                      "--reference",
                                      "official"};
    words.insert(words.end(), more.begin(), more.end());
    return Program(words, temp_ / "errors");
  }

  std::string errors() const { return read_file(temp_ / "errors"); }
  std::string made(const std::string& file) const { return read_file(temp_ / file); }

  static constexpr int kSteps = 30;
  testing::TempDir temp_;
};

// The fault that context parallelism under guidance parallelism has upstream: any plan is one rank's video.
TEST_F(TransferProcessTest, ProcessesMakeTheFileOfOneRank) {
  ASSERT_EQ(start("one", {"--steps", "3"}).wait(), 0) << errors();
  EXPECT_EQ(media::read_frames(temp_ / "one/car.mp4").count, 21);
  EXPECT_EQ(made("one/car.txt"), "a car");
  for (const auto& plan :
       {std::vector<std::string>{"--parallel", "cfg2"}, {"--ranks", "4", "--enable-cfg-parallel"}}) {
    std::vector<std::string> words = {"--steps", "3", "--launch", "processes"};
    words.insert(words.end(), plan.begin(), plan.end());
    ASSERT_EQ(start("many", words).wait(), 0) << errors();
    EXPECT_TRUE(made("many/car.mp4") == made("one/car.mp4")) << plan[1];
    EXPECT_TRUE(made("many/car_control_edge.mp4") == made("one/car_control_edge.mp4")) << plan[1];
  }
}

TEST_F(TransferProcessTest, AKilledRunGoesOnBehindItsChunks) {
  ASSERT_EQ(start("whole").wait(), 0) << errors();
  auto program = start("killed");
  for (int chunks = 0, step = 0; chunks < 3 || step < 2;) {
    const auto line = program.line();
    ASSERT_TRUE(line) << errors();
    const Json event = Json::parse(*line);
    if (!event.contains("stage")) continue;
    step = event["stage"] == "denoise" && event.contains("step") ? event["step"].get<int>() : 0;
    if (step == 1) ++chunks;
  }
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(temp_ / "killed/car.mp4"));
  EXPECT_TRUE(std::filesystem::exists(temp_ / "killed/car.mp4.chunks/0001.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "killed/car.mp4.chunks/0002.safetensors"));

  ASSERT_EQ(start("killed", {"--resume", "--launch", "processes", "--parallel", "cfg2"}).wait(), 0)
      << errors();
  EXPECT_TRUE(made("killed/car.mp4") == made("whole/car.mp4"));
  EXPECT_EQ(Json::parse(made("killed/car.json"))["evaluations"], kSteps) << "one chunk's";
  EXPECT_FALSE(std::filesystem::exists(temp_ / "killed/car.mp4.chunks"));
}

}  // namespace
}  // namespace orrery
