// The program itself, as a shell starts it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/base/text.h"
#include "orrery/media/read.h"
#include "tests/support/temp_dir.h"

extern char** environ;

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A running orrery whose stdout can be read line by line; stderr goes to a file.
class Program {
 public:
  Program(std::vector<std::string> words, const std::string& errors) {
    words.insert(words.begin(), ORRERY_PROGRAM);
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0644);
    if (posix_spawn(&pid_, ORRERY_PROGRAM, &actions, nullptr, argv.data(), environ) != 0)
      throw std::runtime_error("no program");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = fdopen(ends[0], "r");
  }
  ~Program() { fclose(out_); }

  /// The next line, or nothing at the end.
  std::optional<std::string> line() {
    std::string text;
    for (int c; (c = fgetc(out_)) != EOF;) {
      if (c == '\n') return text;
      text += static_cast<char>(c);
    }
    return text.empty() ? std::nullopt : std::optional(text);
  }

  void signal(int number) const { kill(pid_, number); }

  /// Reads to the end and gives the exit code (128 + signal if it was killed).
  int wait() {
    while (line()) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  FILE* out_ = nullptr;
};

class ProcessTest : public ::testing::Test {
 protected:
  std::string errors() const { return read_file(temp_ / "errors"); }
  Program start(const std::vector<std::string>& words) const { return Program(words, temp_ / "errors"); }

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
  refuse(4, "ring", {"generate", "-p", "x", "--parallel", "r2"});
  refuse(2, "/dev/null", {"generate", "-p", "x", "-o", "/dev/null/x.mp4"});
}

}  // namespace
}  // namespace orrery
