#include "orrery/app/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <new>

#include "orrery/app/report.h"

namespace orrery::app {
namespace {

namespace fs = std::filesystem;
using config::Request;
using testing::HasSubstr;

std::string refusal(const std::vector<std::string>& words) {
  try {
    ADD_FAILURE() << "exit code " << run(words);
  } catch (const Error& error) {
    return concat(exit_code(error.kind()), " ", error.what());
  }
  return "";
}

TEST(Run, RefusesWhatIsNoCommand) {
  EXPECT_EQ(refusal({}), "2 expected a command: generate, verify, plan, inspect; orrery --help says more");
  EXPECT_EQ(
      refusal({"generat"}),
      "2 unknown command \"generat\" (did you mean generate?); expected generate, verify, plan, inspect");
  EXPECT_EQ(refusal({"-p", "x"}), "2 unknown command \"-p\"; expected generate, verify, plan, inspect");
}

TEST(Run, PrintsVersionAndHelp) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::MatchesRegex("orrery [0-9.]+.torch [0-9.]+[^ ]*"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"generate", "--help"}, {"inspect", "-h"}}) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(words), 0);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("orrery"));
  }
}

TEST(Run, RefusesARequestBeforeItLooksForAModel) {
  EXPECT_EQ(refusal({"generate", "-m", "/nowhere", "-p", "x", "--width", "100"}),
            "2 width: expected a multiple of 16 from 16 to 16384, found 100 (nearest: 96)");
  EXPECT_THAT(refusal({"generate", "-m", "/nowhere", "-p", "x"}),
              HasSubstr("3 model: expected a file or folder that exists"));
  EXPECT_THAT(refusal({"inspect", "/nowhere"}), HasSubstr("3 model: expected a file or folder that exists"));
  EXPECT_EQ(refusal({"inspect", "--jsn"}),
            "2 unknown option \"--jsn\" (did you mean --json?); --help lists all");
}

TEST(Environment, ReadsTheCacheFolderAsHuggingFaceDoes) {
  ::unsetenv("HF_HUB_CACHE"), ::unsetenv("HUGGINGFACE_HUB_CACHE"), ::unsetenv("HF_HOME"),
      ::unsetenv("XDG_CACHE_HOME"), ::unsetenv("WORLD_SIZE");
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(read_environment().hub, "/home/someone/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(read_environment().hub, "/cache/huggingface/hub");
  ::setenv("HF_HOME", "/hf", 1);
  EXPECT_EQ(read_environment().hub, "/hf/hub");
  ::setenv("HF_HUB_CACHE", "/hub", 1);
  EXPECT_EQ(read_environment().hub, "/hub");
  EXPECT_FALSE(read_environment().place);
}

TEST(PlaceOutputs, OneRequestGoesWhereItSays) {
  std::vector<Request> requests(1);
  requests[0].output = "x.png";
  place_outputs(requests, false, false);
  EXPECT_EQ(requests[0].output, "x.png");
  requests[0].output.reset();
  place_outputs(requests, false, false);
  EXPECT_EQ(requests[0].output, std::nullopt);
  requests[0].name = "clip";
  place_outputs(requests, false, false);
  EXPECT_EQ(requests[0].output, "clip.mp4");
}

TEST(PlaceOutputs, SamplesGoIntoTheFolder) {
  std::vector<Request> requests(2);
  requests[0].name = "a", requests[1].name = "b", requests[1].num_frames = 1;
  EXPECT_THROW(place_outputs(requests, true, false), Error);
  const fs::path folder = fs::temp_directory_path() / "orrery_outputs" / "deeper";
  requests[0].output = requests[1].output = folder.string();
  place_outputs(requests, true, false);
  EXPECT_TRUE(fs::is_directory(folder));
  EXPECT_EQ(requests[0].output, (folder / "a.mp4").string());
  EXPECT_EQ(requests[1].output, (folder / "b.jpg").string());
  fs::remove_all(folder.parent_path());
}

TEST(PlaceOutputs, AFileInTheWayIsAResourceError) {
  const fs::path file = fs::temp_directory_path() / "orrery_output_file";
  { std::ofstream out(file); }
  std::vector<Request> requests(1);
  requests[0].name = "a", requests[0].output = (file / "folder").string();
  try {
    place_outputs(requests, true, false);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    EXPECT_THAT(error.what(), HasSubstr("output: cannot make the folder"));
  }
  fs::remove(file);
}

template <class Exception>
Error reported(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return current_error();
  }
}

TEST(Report, TurnsEveryExceptionIntoAnError) {
  EXPECT_EQ(reported(std::bad_alloc()).kind(), ErrorKind::kResource);
  EXPECT_EQ(reported(Error(ErrorKind::kPeer, "m", "c")).code(), "c");
  const Error error = reported(std::runtime_error("first line\nframe #0\nframe #1"));
  EXPECT_EQ(error.kind(), ErrorKind::kInternal);
  EXPECT_EQ(error.message(), "first line");
  EXPECT_EQ(reported(3).kind(), ErrorKind::kInternal);
}

TEST(Report, IsOneLine) {
  EXPECT_EQ(error_line(Error(ErrorKind::kRequest, "a\nb\tc\x1b[31m")), "orrery: request error: a b c [31m");
}

}  // namespace
}  // namespace orrery::app
