#include "orrery/ops/modulate.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "bench/peak.h"
#include "orrery/ops/silu_mul.h"

namespace orrery::bench {
namespace {

constexpr int64_t kTokens = 16384, kWidth = 2048;  // 128 MB of float32

struct Inputs {
  Tensor x, y, table, row;
  explicit Inputs(const benchmark::State& state)
      : x(at::randn({kTokens, kWidth}).to(state.range(0) ? at::kBFloat16 : at::kFloat)),
        y(x.clone()),
        table(at::randn({2, kWidth})),
        row(at::randint(2, {kTokens}, at::kInt)) {}
  double bytes() const { return static_cast<double>(x.nbytes()); }
};

void layer_norm_modulate(benchmark::State& state) {
  const Inputs in(state);
  Tensor y;
  for (auto _ : state)
    benchmark::DoNotOptimize(y = ops::layer_norm_modulate(in.x, in.table, in.table, in.row, 1e-6));
  report_bytes(state, 2 * in.bytes());
}

void add_gated(benchmark::State& state) {
  const Inputs in(state);
  for (auto _ : state) ops::add_gated_(in.x, in.table, in.y, in.row);
  report_bytes(state, 3 * in.bytes());
}

void silu_mul(benchmark::State& state) {
  const Inputs in(state);
  Tensor y;
  for (auto _ : state) benchmark::DoNotOptimize(y = ops::silu_mul(in.x, in.y));
  report_bytes(state, 3 * in.bytes());
}

BENCHMARK(layer_norm_modulate)
    ->ArgName("bfloat16")
    ->Arg(0)
    ->Arg(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(add_gated)->ArgName("bfloat16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(silu_mul)->ArgName("bfloat16")->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::bench
