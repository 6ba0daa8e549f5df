#include "orrery/ops/rms_norm.h"

#include <ATen/ops/randn.h>

#include "bench/peak.h"

namespace orrery::bench {
namespace {

constexpr int64_t kTokens = 16384, kWidth = 2048, kHeads = 16;  // 128 MB of float32

at::ScalarType dtype(const benchmark::State& state) { return state.range(0) ? at::kBFloat16 : at::kFloat; }

void rms_norm(benchmark::State& state) {
  const Tensor x = at::randn({kTokens, kWidth}).to(dtype(state)), weight = at::randn({kWidth});
  Tensor y;
  for (auto _ : state) benchmark::DoNotOptimize(y = ops::rms_norm(x, weight, 1e-6));
  report_bytes(state, 2.0 * static_cast<double>(x.nbytes()));
}

void rms_norm_rope(benchmark::State& state) {
  const auto pairs = state.range(1) ? ops::Pairs::kAdjacent : ops::Pairs::kHalves;
  const Tensor x = at::randn({kTokens, kHeads, kWidth / kHeads}).to(dtype(state)),
               weight = at::randn({kWidth / kHeads});
  const Tensor rope = at::randn({kTokens, kWidth / kHeads});
  Tensor y;
  for (auto _ : state) benchmark::DoNotOptimize(y = ops::rms_norm_rope(x, weight, rope, 1e-6, pairs));
  report_bytes(state, 2.0 * static_cast<double>(x.nbytes()) + static_cast<double>(rope.nbytes()));
}

BENCHMARK(rms_norm)->ArgName("bfloat16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(rms_norm_rope)
    ->ArgNames({"bfloat16", "adjacent"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::bench
