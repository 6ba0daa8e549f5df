// docs/architecture.md, "Tree": a folder includes folders of lower levels only, and folders of one level do
// not know each other.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace {

namespace fs = std::filesystem;

const std::map<std::string, int> kLevels = {{"base", 0},    {"config", 1},  {"platform", 1}, {"media", 1},
                                            {"ops", 2},     {"comm", 2},    {"parallel", 3}, {"nn", 4},
                                            {"weights", 5}, {"models", 6},  {"sample", 7},   {"pipeline", 8},
                                            {"planner", 9}, {"engine", 10}, {"serve", 11},   {"app", 12}};

fs::path source() { return fs::path(ORRERY_SOURCE_DIR) / "src/orrery"; }

TEST(Layering, EveryIncludePointsDown) {
  const std::regex include(R"re(^\s*#include "orrery/([a-z_]+)/)re");
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source())) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    const std::string folder = *entry.path().lexically_relative(source()).begin();
    ASSERT_TRUE(kLevels.contains(folder)) << folder << " is not in the table";
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      ++seen;
      const std::string target = match[1];
      ASSERT_TRUE(kLevels.contains(target)) << entry.path() << ": " << line;
      EXPECT_TRUE(target == folder || kLevels.at(target) < kLevels.at(folder))
          << entry.path() << ": " << line;
    }
  }
  EXPECT_GT(seen, 100);
}

TEST(Layering, ModelsAndPipelinesDoNotMentionRanks) {
  const std::regex forbidden(R"(world_size|[^a-z_]rank\(\)|all_to_all|all_gather|exchange\()");
  for (const char* folder : {"models", "pipeline"})
    for (const auto& entry : fs::recursive_directory_iterator(source() / folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);)
        EXPECT_FALSE(std::regex_search(line, forbidden)) << entry.path() << ": " << line;
    }
}

TEST(Layering, EnvironmentIsReadInAppOnly) {
  for (const auto& entry : fs::recursive_directory_iterator(source())) {
    if (!entry.is_regular_file() || *entry.path().lexically_relative(source()).begin() == "app") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);)
      EXPECT_EQ(line.find("getenv("), std::string::npos) << entry.path() << ": " << line;
  }
}

}  // namespace
