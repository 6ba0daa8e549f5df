#include "orrery/app/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace orrery::app {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> lines(const std::ostringstream& out) {
  std::vector<std::string> all;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

TEST(ProgressBar, ShowsStepsTimeAndEstimate) {
  EXPECT_EQ(progress_bar({"denoise", 9, 36, 3.0}, 80),
            "denoise   9/36 [##########------------------------------] 3.0 s, 9.0 s left");
  EXPECT_EQ(progress_bar({"denoise", 36, 36, 12.0}, 60),
            "denoise  36/36 [###################################] 12.0 s");
  EXPECT_EQ(progress_bar({"text", 0, 0, 1.25}, 80), "text     1.2 s");
  EXPECT_EQ(progress_bar({"denoise", 0, 36, 0.0}, 80),
            "denoise   0/36 [----------------------------------------] 0.0 s");
}

TEST(ProgressBar, NeverFillsTheLine) {
  for (int columns = 1; columns < 120; ++columns)
    for (int64_t step = 0; step <= 36; ++step)
      EXPECT_LE(progress_bar({"denoise", step, 36, 1000.0}, columns).size(),
                static_cast<size_t>(std::max(columns - 1, 1)));
}

TEST(ProgressLine, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(progress_line({"text", 0, 0, 1e-7}), "text");
  EXPECT_EQ(progress_line({"denoise", 9, 36, 3.0}), "denoise 9/36, 3.0 s, 9.0 s left");
  EXPECT_EQ(progress_line({"denoise", 36, 36, 80.0}), "denoise 36/36, 1 min 20 s");
}

TEST(ProgressView, LinesComeAtStagesAndEveryTenSeconds) {
  std::ostringstream out;
  ProgressView view(out, ProgressStyle::kLines, 80);
  view.begin("a.mp4", 0, 1);
  view.update({"text", 0, 0, 0});
  for (int64_t step = 1; step <= 8; ++step)
    view.update({"denoise", step, 8, 4.0 * static_cast<double>(step)});
  view.finish({{"a.mp4"}, 7, 8, {{"text", 0.5}, {"denoise", 32.0}}, ""}, "cfg1,u1,r1");
  EXPECT_THAT(lines(out),
              testing::ElementsAre(
                  "text", "denoise 1/8, 4.0 s, 28.0 s left", "denoise 4/8, 16.0 s, 16.0 s left",
                  "denoise 7/8, 28.0 s, 4.0 s left", "denoise 8/8, 32.0 s",
                  "wrote a.mp4 (seed 7, 8 evaluations, plan cfg1,u1,r1, text 0.5 s, denoise 32.0 s)"));
}

TEST(ProgressView, EveryJsonEventIsAnObjectOnALine) {
  std::ostringstream out;
  ProgressView view(out, ProgressStyle::kJson, 80);
  view.begin("a\xFF.mp4", 1, 3);
  view.update({"text", 0, 0, 0});
  view.update({"denoise", 1, 4, 2.0});
  view.update({"denoise", 2, 4, 2.001});
  view.finish({{"a.mp4"}, 7, 4, {{"denoise", 8.0}}, ""}, "cfg2,u1,r1");
  view.fail(Error(ErrorKind::kCheckpoint, "no such file", "missing_file").with("making b"));
  const auto all = lines(out);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(Json::parse(all[0]),
            Json::parse(R"({"event": "start", "output": "a\ufffd.mp4", "sample": 2, "samples": 3})"));
  EXPECT_EQ(Json::parse(all[1]),
            Json::parse(R"({"event": "step", "stage": "text", "step": 0, "steps": 0, "seconds": 0.0})"));
  EXPECT_EQ(
      Json::parse(all[2]),
      Json::parse(
          R"({"event": "step", "stage": "denoise", "step": 1, "steps": 4, "seconds": 2.0, "seconds_left": 6.0})"));
  EXPECT_EQ(Json::parse(all[3])["step"], 2);
  EXPECT_EQ(
      Json::parse(all[4]),
      Json::parse(
          R"({"event": "done", "files": ["a.mp4"], "seed": 7, "evaluations": 4, "plan": "cfg2,u1,r1", "seconds": {"denoise": 8.0}})"));
  EXPECT_EQ(Json::parse(all[5])["message"], "no such file (while making b)");
  EXPECT_EQ(Json::parse(all[5])["kind"], "checkpoint");
  EXPECT_EQ(Json::parse(all[5])["code"], "missing_file");
}

TEST(ProgressView, ABarIsOneLinePerStage) {
  std::ostringstream out;
  ProgressView view(out, ProgressStyle::kBar, 40);
  view.begin("a.mp4", 0, 2);
  view.update({"text", 0, 0, 0});
  view.update({"denoise", 1, 2, 1.0});
  view.update({"denoise", 1, 2, 1.01});  // too soon to draw again
  view.update({"denoise", 2, 2, 2.0});
  view.fail(Error(ErrorKind::kCancelled, "stopped"));
  EXPECT_EQ(out.str(),
            "[1/2] a.mp4\n\rtext     0.0 s\x1b[K\n\rdenoise  1/2 1.0 s, 1.0 s left\x1b[K\r"
            "denoise  2/2 [##################] 2.0 s\x1b[K\n");
}

TEST(ProgressView, QuietPrintsNothing) {
  std::ostringstream out;
  ProgressView view(out, ProgressStyle::kQuiet, 80);
  view.begin("a.mp4", 0, 2);
  view.update({"text", 0, 0, 0});
  view.finish({{"a.mp4"}, 7, 8, {}, ""}, "cfg1,u1,r1");
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace orrery::app
