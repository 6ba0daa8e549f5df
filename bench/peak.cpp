#include "bench/peak.h"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstring>

#include "orrery/base/clock.h"
#include "orrery/base/tensor.h"
#include "orrery/ops/cpu/lanes.h"

namespace orrery::bench {
namespace {

constexpr int64_t kTurns = 2'000'000;
constexpr int kChains = 12;  // more than latency times ports, fewer than registers

struct MultiplyAdd {
  template <int W>
  static ORRERY_INLINE void run(float* to) {
    const ops::cpu::Floats<W> factor = ops::cpu::load<W>(to);
    ops::cpu::Floats<W> chains[kChains];
    for (int j = 0; j < kChains; ++j)
      chains[j] = factor * static_cast<float>(j);  // different, or the compiler keeps one
    for (int64_t i = 0; i < kTurns; ++i) {
#pragma GCC unroll 12
      for (int j = 0; j < kChains; ++j) {
        chains[j] = chains[j] * factor + factor;
      }
    }
    for (int j = 1; j < kChains; ++j) chains[0] += chains[j];
    ops::cpu::store<W>(to, chains[0]);
  }
};

double vector_width() {
  using ops::cpu::Isa;
  return ops::cpu::isa() == Isa::kAvx512 ? 16 : ops::cpu::isa() == Isa::kAvx2 ? 8 : 4;
}

/// Seconds of the fastest of five runs of `work` on every thread.
template <class Work>
double fastest(const Work& work) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const Stopwatch watch;
    at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) work(thread);
    });
    best = std::min(best, watch.seconds());
  }
  return best;
}

}  // namespace

double peak_flops() {
  static const double found = [] {
    const double seconds = fastest([](int64_t) {
      float values[16];
      std::fill_n(values, 16, 0.5f);
      ops::cpu::run_for_isa<MultiplyAdd>(&values[0]);
      benchmark::DoNotOptimize(values);
    });
    return 2.0 * kTurns * kChains * vector_width() * at::get_num_threads() / seconds;
  }();
  return found;
}

double peak_bandwidth() {
  static const double found = [] {
    constexpr int64_t kFloats = int64_t{64} << 20;  // per thread and side
    const int64_t threads = at::get_num_threads();
    const Tensor from = at::ones({threads, kFloats}), to = at::ones({threads, kFloats});
    const double seconds = fastest([&](int64_t thread) {
      std::memcpy(to.data_ptr<float>() + thread * kFloats, from.data_ptr<float>() + thread * kFloats,
                  4 * kFloats);
    });
    return 8.0 * kFloats * static_cast<double>(threads) / seconds;
  }();
  return found;
}

void report_flops(benchmark::State& state, double operations) {
  using benchmark::Counter;
  state.counters["FLOP/s"] = Counter(operations, Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = Counter(operations / peak_flops(), Counter::kIsIterationInvariantRate);
}

void report_bytes(benchmark::State& state, double bytes) {
  using benchmark::Counter;
  state.counters["B/s"] = Counter(bytes, Counter::kIsIterationInvariantRate);
  state.counters["of_peak"] = Counter(bytes / peak_bandwidth(), Counter::kIsIterationInvariantRate);
}

}  // namespace orrery::bench
