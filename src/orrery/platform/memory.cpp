#include "orrery/platform/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include "orrery/base/error.h"
#include "orrery/platform/cgroup.h"

namespace orrery::platform {
namespace {

/// The number after `key` at the start of a line ("MemTotal:  1000 kB"), or 0.
int64_t field(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::strtoll(line.c_str() + key.size(), nullptr, 10);
  return 0;
}

/// What one control group grants and what it still has; its page cache that nobody uses can be taken back at
/// any time.
void apply_limit(const std::string& folder, Memory& memory) {
  const auto [limit, used,
              cache] = [&]() -> std::tuple<std::optional<int64_t>, std::optional<int64_t>, int64_t> {
    if (const auto max = first_number(folder + "/memory.max"))
      return {max, first_number(folder + "/memory.current"),
              field(folder + "/memory.stat", "inactive_file ")};
    return {first_number(folder + "/memory.limit_in_bytes"), first_number(folder + "/memory.usage_in_bytes"),
            field(folder + "/memory.stat", "total_inactive_file ")};
  }();
  if (!limit || *limit >= memory.total) return;
  memory.total = *limit;
  memory.available = std::min(memory.available, std::max<int64_t>(0, *limit - used.value_or(0) + cache));
}

}  // namespace

Memory system_memory(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  Memory memory{field(meminfo, "MemTotal:") * 1024, field(meminfo, "MemAvailable:") * 1024};
  ensure(memory.total > 0, "no MemTotal in ", meminfo);
  for (const auto& folder : cgroup_folders("memory", root)) apply_limit(folder, memory);
  return memory;
}

int64_t current_rss() {
  std::ifstream in("/proc/self/statm");
  int64_t size = 0, resident = 0;
  in >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t peak_rss() { return field("/proc/self/status", "VmHWM:") * 1024; }

void tune_malloc() {
  // One arena: the others are built from 64 MB heaps, so that threads would still map, fault and unmap every
  // larger block.
  ::mallopt(M_ARENA_MAX, 1);
  // From these sizes on memory goes back to the system at once: whole models do, activations do not.
  constexpr int kGiB = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kGiB);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

void release_free_memory() { malloc_trim(0); }

}  // namespace orrery::platform
