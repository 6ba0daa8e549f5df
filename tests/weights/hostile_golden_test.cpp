// Every hostile file ends in the Error that its list gives, or loads where it says so.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "orrery/weights/source.h"
#include "tests/support/golden.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;

constexpr long kAllowedGrowth = 64 << 10;  // kB, over all files together

long peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// "loads", or the code of the Error. Whatever loads is read to its last element.
std::string outcome(const fs::path& path) {
  try {
    for (const auto& [name, t] : open_weights(path.string()))
      EXPECT_GE(t.to(at::kDouble).sum().item<double>(), 0) << name;
    return "loads";
  } catch (const Error& error) {
    const bool unsupported = error.code() == "unsupported";
    EXPECT_EQ(error.kind(), unsupported ? ErrorKind::kUnsupported : ErrorKind::kCheckpoint) << error.what();
    EXPECT_THAT(error.message(), ::testing::HasSubstr(path.filename().string()));
    return error.code();
  }
}

TEST(HostileGolden, EveryFileEndsAsItsListSays) {
  const auto folders = golden_folders("checkpoints");
  ASSERT_FALSE(folders.empty());
  const long before = peak_memory();
  for (const auto& folder : folders) {
    int count = 0;
    const Json files = read_json(folder / "hostile.json")["files"];
    for (const auto& [name, entry] : files.items()) {
      fs::path path = (folder / "hostile" / name).lexically_normal();
      if (!path.has_filename()) path = path.parent_path();
      // "a or b": either will do.
      const auto expected = " or " + entry["expect"].get<std::string>() + " or ";
      EXPECT_THAT(expected, ::testing::HasSubstr(" or " + outcome(path) + " or ")) << path;
      ++count;
    }
    EXPECT_GT(count, 0);
    RecordProperty("files", count);
  }
  EXPECT_LT(peak_memory() - before, kAllowedGrowth) << "kB of memory that a file's claims obtained";
}

}  // namespace
}  // namespace orrery::weights
