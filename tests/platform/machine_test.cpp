// Memory, CPU and control groups, on this machine and on described ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "orrery/platform/cgroup.h"
#include "orrery/platform/cpu.h"
#include "orrery/platform/memory.h"
#include "orrery/platform/thread.h"

namespace orrery::platform {
namespace {

namespace fs = std::filesystem;

/// A machine described by the files of its /proc and /sys.
class Machine : public ::testing::Test {
 protected:
  Machine() {
    root_ =
        fs::path(::testing::TempDir()) /
        (std::string("orrery_machine_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    write("proc/meminfo",
          "MemTotal:  1000 kB\nMemFree:   100 kB\nMemAvailable: 800 kB\nHugePages_Total: 0\n");
  }
  ~Machine() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }

  fs::path root_;
};

TEST_F(Machine, WithoutGroupsHasTheHostsMemory) {
  const auto memory = system_memory(root_);
  EXPECT_EQ(memory.total, 1000 * 1024);
  EXPECT_EQ(memory.available, 800 * 1024);
}

TEST_F(Machine, GroupOfVersion2LimitsMemoryAndCountsItsCacheAsAvailable) {
  write("proc/self/cgroup", "0::/jobs/mine\n");
  write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/memory.max", "512000\n");
  write("sys/fs/cgroup/jobs/memory.current", "400000\n");
  write("sys/fs/cgroup/jobs/memory.stat", "anon 5\ninactive_file 100000\nactive_file 7\n");
  const auto memory = system_memory(root_);
  EXPECT_EQ(memory.total, 512000);
  EXPECT_EQ(memory.available, 212000);
}

TEST_F(Machine, GroupOfVersion1LimitsMemory) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes",
        "600000\n");  // seen from inside: the path is the host's
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "700000\n");
  const auto memory = system_memory(root_);
  EXPECT_EQ(memory.total, 600000);
  EXPECT_EQ(memory.available, 0);
}

TEST_F(Machine, LimitAboveTheHostsMemoryDoesNotCount) {
  write("proc/self/cgroup", "4:memory:/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(system_memory(root_).total, 1000 * 1024);
}

TEST_F(Machine, FoldersGoFromTheOwnGroupOutwards) {
  write("proc/self/cgroup", "3:cpuset:/x\n2:cpu,cpuacct:/a/b\n0::/c\n");
  const std::string base = root_.string() + "/sys/fs/cgroup";
  EXPECT_THAT(cgroup_folders("cpu", root_),
              ::testing::ElementsAre(base + "/cpu/a/b", base + "/cpu/a", base + "/cpu", base + "/c", base));
}

TEST_F(Machine, QuotaLimitsTheCores) {
  write("proc/cpuinfo", "processor : 0\nmodel name\t: Some CPU @ 2 GHz\n");
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(detect_cpu(root_).cores, 1);
  EXPECT_EQ(detect_cpu(root_).model, "Some CPU @ 2 GHz");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_GE(detect_cpu(root_).cores, 1);
}

TEST(Cpu, CoresFollowTheAffinity) {
  int cores = 0;
  start_thread("pinned", 1, [&] {
    cpu_set_t all, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    cores = detect_cpu().cores;
  }).join();
  EXPECT_EQ(cores, 1);
}

/// ctest also runs this under ATEN_CPU_CAPABILITY=avx2 and =default, which hold libtorch and orrery back
/// alike.
TEST(Cpu, InstructionsAreThoseOfTheSystemUnlessHeldBack) {
  std::ifstream in("/proc/cpuinfo");
  const std::string info((std::istreambuf_iterator<char>(in)), {});
  const auto has = [&](const std::string& flag) { return info.find(" " + flag + " ") != std::string::npos; };
  const char* capability = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string held = capability ? capability : "";
  const bool avx2 = has("avx2") && has("fma") && held != "default";
  const bool avx512 =
      avx2 && has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq") && held != "avx2";
  const Cpu cpu = detect_cpu();
  EXPECT_FALSE(cpu.model.empty());
  EXPECT_EQ(cpu.isa, avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kPlain);
  EXPECT_EQ(cpu.bfloat16, avx512 && (has("avx512_bf16") || has("amx_bf16")));
}

TEST(Cpu, PrefersBfloat16OnlyWhereHardwareMultipliesIt) {
  Cpu cpu;
  cpu.isa = Isa::kAvx512;
  EXPECT_EQ(preferred_dtype(cpu), at::kFloat);
  cpu.bfloat16 = true;
  EXPECT_EQ(preferred_dtype(cpu), at::kBFloat16);
}

TEST(Memory, ResidentSetFollowsWhatIsTouched) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what is freed";
#endif
  constexpr int64_t kBytes = 64 << 20;
  const int64_t before = current_rss();
  EXPECT_GT(before, 0);
  {
    const std::vector<char> block(kBytes, 1);
    EXPECT_GE(current_rss(), before + kBytes * 9 / 10);
    EXPECT_EQ(block.back(), 1);
  }
  EXPECT_LT(current_rss(), before + kBytes / 10);
  EXPECT_GE(peak_rss(), before + kBytes * 9 / 10);
}

int64_t page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Faults while an activation-sized buffer is freed and allocated again, after a first round.
int64_t faults_of_reuse() {
  const auto touch = [] {
    constexpr size_t kBytes = size_t{200} << 20;
    void* block = std::malloc(kBytes);
    std::memset(block, 1, kBytes);
    asm volatile("" : : "r"(block) : "memory");  // or the compiler drops a block that nobody reads
    std::free(block);
  };
  touch();
  const int64_t before = page_faults();
  for (int i = 0; i < 3; ++i) touch();
  return page_faults() - before;
}

[[noreturn]] void reuse_after_tuning() {
  tune_malloc();
  const int64_t on_main = faults_of_reuse();
  int64_t on_thread = 0;
  start_thread("reuse", 1, [&] { on_thread = faults_of_reuse(); }).join();
  std::fprintf(stderr, "faults: %ld and %ld\n", static_cast<long>(on_main), static_cast<long>(on_thread));
  std::exit(on_main < 50 && on_thread < 50 ? 0 : 1);
}

TEST(MemoryDeathTest, TunedMallocKeepsLargeBuffersOnEveryThread) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers bring their own malloc";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process: arenas that exist stay
  EXPECT_EXIT(reuse_after_tuning(), ::testing::ExitedWithCode(0), "faults: ");
  // 300 even with huge pages.
  EXPECT_GT(faults_of_reuse(), 200)
      << "without tuning each round maps 200 MB anew; else this test shows nothing";
}

}  // namespace
}  // namespace orrery::platform
