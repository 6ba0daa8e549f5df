#include "orrery/base/text.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "orrery/base/error.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / concat("orrery_text_test_", ::getpid());
};

TEST(Text, NearestNameIgnoresDashesAndForgivesTypos) {
  const std::vector<std::string> known = {"guidance_scale", "num_frames", "seed"};
  EXPECT_EQ(nearest("guidence-scale", known), "guidance_scale");
  EXPECT_EQ(nearest("num-frame", known), "num_frames");
  EXPECT_EQ(nearest("colour", known), "");
  EXPECT_EQ(did_you_mean("sed", known), " (did you mean seed?)");
}

TEST(Text, Human) {
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(4'118'349'824), "4.1 GB");
  EXPECT_EQ(human_seconds(3.44), "3.4 s");
  EXPECT_EQ(human_seconds(65), "1 min 05 s");
  EXPECT_EQ(human_seconds(7260), "2 h 01 min");
}

TEST(Text, Strip) {
  EXPECT_EQ(strip(" \n a b\t"), "a b");
  EXPECT_EQ(strip(" \n"), "");
}

using WriteFile = TemporaryFolder;

TEST_F(WriteFile, ReplacesInOneStep) {
  const auto path = (folder_ / "a.txt").string();
  write_file(path, "one");
  write_file(path, "two");
  EXPECT_EQ(read_file(path), "two");
  EXPECT_FALSE(fs::exists(path + ".partial"));
}

TEST_F(WriteFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const auto path = (folder_ / "a.txt").string();
  write_file(path, "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tiny{16, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tiny), 0);
  try {
    write_file(path, std::string(1000, 'x'));
    ADD_FAILURE() << "wrote past the limit";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kResource);
    EXPECT_NE(e.message().find(path), std::string::npos);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(read_file(path), "old");
  EXPECT_FALSE(fs::exists(path + ".partial"));
}

TEST_F(WriteFile, SaysWhyAFolderCannotBeWritten) {
  EXPECT_THROW(write_file((folder_ / "none/a.txt").string(), "x"), Error);
  EXPECT_THROW(read_file((folder_ / "none").string()), Error);
}

TEST(Error, TrailAndCodes) {
  Error e(ErrorKind::kCheckpoint, "no tensor x", "missing_key");
  e.with("loading transformer");
  EXPECT_STREQ(e.what(), "no tensor x (while loading transformer)");
  EXPECT_EQ(e.message(), "no tensor x");
  EXPECT_EQ(e.code(), "missing_key");
  EXPECT_EQ(exit_code(e.kind()), 3);
  EXPECT_THROW(require(false, "x"), Error);
  EXPECT_NO_THROW(ensure(true, "x"));
}

}  // namespace
}  // namespace orrery
