#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "orrery/config/fields.h"

namespace orrery::config {

enum class Device { kAuto, kCpu, kCuda, kNpu };
constexpr std::array<std::string_view, 4> names_of(Device) { return {"auto", "cpu", "cuda", "npu"}; }

/// The compute type; auto is the machine's choice.
enum class Dtype { kAuto, kFloat32, kBFloat16 };
constexpr std::array<std::string_view, 3> names_of(Dtype) { return {"auto", "float32", "bfloat16"}; }

/// mapped: weights stay in their file and are widened where they are used. widened: one copy in the compute
/// type. auto: widened if it fits.
enum class WeightStorage { kAuto, kMapped, kWidened };
constexpr std::array<std::string_view, 3> names_of(WeightStorage) { return {"auto", "mapped", "widened"}; }

/// How to run. The parallel fields are several spellings of one thing; `resolve` makes Factors of them.
struct Plan {
  std::optional<int64_t> ranks;
  std::optional<std::string> parallel;
  std::optional<int64_t> cfg_parallel_size, ulysses_degree, ring_degree;
  std::optional<bool> enable_cfg_parallel;
  std::optional<int64_t> context_parallel_size;
  Device device = Device::kAuto;
  Dtype dtype = Dtype::kAuto;
  WeightStorage weights = WeightStorage::kAuto;
  int64_t threads = 0;

  bool operator==(const Plan&) const = default;

  template <class Visitor>
  static void fields(Visitor&& visit) {
    using P = Plan;
    visit(&P::ranks, Field{"ranks", "how many ranks share the work"});
    visit(&P::parallel,
          Field{"parallel", "how they share it, for example cfg2,u4: guidance branches and Ulysses"});
    visit(&P::cfg_parallel_size, Field{"cfg_parallel_size", "the same as cfgN in --parallel: 1 or 2"});
    visit(&P::ulysses_degree, Field{"ulysses_degree", "the same as uN in --parallel"});
    visit(&P::ring_degree, Field{"ring_degree", "the same as rN in --parallel"});
    visit(&P::enable_cfg_parallel, Field{"enable_cfg_parallel", "the same as cfg2 in --parallel"});
    visit(&P::context_parallel_size,
          Field{"context_parallel_size", "ranks that share a sequence: Ulysses times ring"});
    visit(&P::device, Field{"device", "where to run"});
    visit(&P::dtype, Field{"dtype", "compute type; auto: the machine's best"});
    visit(&P::weights,
          Field{"weights", "mapped: stay in the file; widened: one copy; auto: widened if it fits"});
    visit(&P::threads, Field{"threads", "cores to use, shared by all ranks; 0: all"});
  }
};

/// The axes of the mesh: ranks = cfg · ring · ulysses.
struct Factors {
  int64_t cfg = 1, ulysses = 1, ring = 1;

  int64_t ranks() const { return cfg * ulysses * ring; }
  bool operator==(const Factors&) const = default;
};

/// "cfg2,u4,r1"; `parallel` takes it back.
std::string to_string(const Factors& factors);

/// The factorisation that the plan asks for. What it leaves open: one rank if nothing is said; for N ranks,
/// both guidance branches at once where N is even, and Ulysses over the rest. Errors: request if spellings
/// contradict each other or nothing fits (the message lists what would), unsupported for ring > 1 and for
/// devices other than the CPU.
Factors resolve(const Plan& plan);

}  // namespace orrery::config
