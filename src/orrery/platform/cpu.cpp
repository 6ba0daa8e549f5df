#include "orrery/platform/cpu.h"

#include <ATen/Version.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <thread>

#include "orrery/base/text.h"
#include "orrery/platform/cgroup.h"

namespace orrery::platform {
namespace {

/// What a file says behind "NAME:", the first time; "" if it does not.
std::string value_of(const std::string& path, std::string_view name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return std::string(strip(line.substr(line.find(':') + 1)));
  return "";
}

std::string model_name(const std::string& root) {
  if (const std::string name = value_of(root + "/proc/cpuinfo", "model name"); !name.empty()) return name;
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

Isa widest_isa() {
  const std::string name = at::get_cpu_capability();
  return name == "AVX512" ? Isa::kAvx512 : name == "AVX2" ? Isa::kAvx2 : Isa::kPlain;
}

int affinity() {
  // A cpu_set_t holds 1024 CPUs; larger machines refuse it, so ask with room for more.
  constexpr int kMost = 1 << 16;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kMost),
                                                             [](cpu_set_t* s) { CPU_FREE(s); });
  const size_t bytes = CPU_ALLOC_SIZE(kMost);
  if (::sched_getaffinity(0, bytes, set.get()) != 0)
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::max(1, CPU_COUNT_S(bytes, set.get()));
}

/// The CPUs' worth of time that one control group grants, rounded up, or `cores` if it grants more or says
/// nothing.
int within_quota(const std::string& folder, int cores) {
  int64_t quota = 0, period = 0;
  std::ifstream in(folder + "/cpu.max");
  if (!(in >> quota >> period)) {
    quota = first_number(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = first_number(folder + "/cpu.cfs_period_us").value_or(0);
  }
  if (quota <= 0 || period <= 0) return cores;
  return static_cast<int>(std::min<int64_t>(cores, (quota + period - 1) / period));
}

}  // namespace

Cpu detect_cpu(const std::string& root) {
  Cpu cpu;
  cpu.model = model_name(root);
  cpu.cores = affinity();
  for (const auto& folder : cgroup_folders("cpu", root)) cpu.cores = within_quota(folder, cpu.cores);
  cpu.isa = widest_isa();
#if defined(__x86_64__)
  cpu.bfloat16 = cpu.isa == Isa::kAvx512 &&
                 (__builtin_cpu_supports("avx512bf16") != 0 || __builtin_cpu_supports("amx-bf16") != 0);
#endif
  return cpu;
}

uint64_t core_set(const std::string& root) {
  std::string boot;
  std::getline(std::ifstream(root + "/proc/sys/kernel/random/boot_id"), boot);
  return std::hash<std::string>()(boot + value_of(root + "/proc/self/status", "Cpus_allowed_list"));
}

at::ScalarType preferred_dtype(const Cpu& cpu) { return cpu.bfloat16 ? at::kBFloat16 : at::kFloat; }

}  // namespace orrery::platform
