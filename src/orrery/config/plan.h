#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

/// Where ranks live: threads of one process that share its weights, or processes of their own.
enum class Launch { kThreads, kProcesses };
constexpr std::array<std::string_view, 2> names_of(Launch) { return {"threads", "processes"}; }

/// How to run. The parallel fields are several spellings of one thing; `resolve` makes Factors of them.
struct Plan {
  std::optional<int64_t> ranks;
  std::optional<std::string> parallel;
  std::optional<int64_t> cfg_parallel_size, ulysses_degree, ring_degree;
  std::optional<bool> enable_cfg_parallel;
  std::optional<int64_t> context_parallel_size;
  std::string alltoall_cut = "auto", alltoall_overlap = "auto";
  Launch launch = Launch::kThreads;
  int64_t timeout = 1800;
  Device device = Device::kAuto;
  Dtype dtype = Dtype::kAuto;
  WeightStorage weights = WeightStorage::kAuto;
  int64_t threads = 0;
  bool vae_tiling = false;

  bool operator==(const Plan&) const = default;

  template <class Visitor>
  static void fields(Visitor&& visit) {
    using P = Plan;
    visit(&P::ranks, Field{"ranks", "how many ranks share the work"});
    visit(&P::parallel,
          Field{"parallel",
                "how they share it: auto, or factors such as cfg2,u4,r2 (guidance branches, Ulysses, ring)"});
    visit(&P::cfg_parallel_size, Field{"cfg_parallel_size", "the same as cfgN in --parallel: 1 or 2"});
    visit(&P::ulysses_degree, Field{"ulysses_degree", "the same as uN in --parallel"});
    visit(&P::ring_degree, Field{"ring_degree", "the same as rN in --parallel"});
    visit(&P::enable_cfg_parallel,
          Field{"enable_cfg_parallel", "as cfg2 in --parallel; it halves --context-parallel-size"});
    visit(&P::context_parallel_size,
          Field{"context_parallel_size",
                "ranks that share a sequence (Ulysses times ring); with --enable-cfg-parallel: all ranks, "
                "half of them for each branch"});
    visit(&P::alltoall_cut,
          Field{"alltoall_cut",
                "Ulysses exchanges heads in N chunks, one after another, for less memory; 0: off; auto: if "
                "faster"});
    visit(&P::alltoall_overlap,
          Field{"alltoall_overlap",
                "the same, with the next chunk under way while one computes; cut wins if both are given"});
    visit(&P::launch, Field{"launch", "ranks are threads of one process, or processes"});
    visit(&P::timeout, Field{"timeout", "seconds that a rank which lives may make no progress"});
    visit(&P::device, Field{"device", "where to run"});
    visit(&P::dtype, Field{"dtype", "compute type; auto: the machine's best"});
    visit(&P::weights,
          Field{"weights", "mapped: stay in the file; widened: one copy; auto: widened if it fits"});
    visit(&P::threads, Field{"threads", "cores to use, shared by all ranks; 0: all"});
    visit(&P::vae_tiling,
          Field{"vae_tiling",
                "the VAE works in overlapping tiles of 256 pixels, blended as diffusers does: less memory"});
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
/// both guidance branches at once where N is even, then Ulysses over as many ranks as lie within one node,
/// then ring. node_ranks: ranks of a node, neighbours in rank order; 0: all. Any factors are legal with any
/// model: tokens and heads need not divide.
///
/// context_parallel_size N means Ulysses · ring = N: beside cfg2 (parallel, cfg_parallel_size) the run has
/// 2·N ranks. With enable_cfg_parallel it is the number of all ranks, as in NVIDIA's programs, and each
/// branch has N/2.
///
/// Errors: request if spellings contradict each other, if nothing fits (the message lists what would) or a
/// number is out of range; unsupported for devices other than the CPU.
Factors resolve(const Plan& plan, int64_t node_ranks = 0);

/// All factorisations that the plan allows, the one that resolve() takes first. Errors as resolve().
std::vector<Factors> legal_factors(const Plan& plan, int64_t node_ranks = 0);

/// How Ulysses exchanges an attention's heads: in `count` chunks, with the next one under way while one
/// computes (overlap) or one after another.
struct Chunks {
  int64_t count = 1;
  bool overlap = false;
  bool operator==(const Chunks&) const = default;
};

/// "off", "cut 2", "overlap 4"
std::string to_string(const Chunks& chunks);

/// The ways that alltoall_cut and alltoall_overlap leave open, never none; more than one are to be timed. An
/// N above 1 is the only one, and cut wins; 0 and 1 turn their kind off. Error of kind request for words
/// other than auto and 0 to 1,024.
std::vector<Chunks> alltoall_candidates(const Plan& plan);

}  // namespace orrery::config
