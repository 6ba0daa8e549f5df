#include "orrery/ops/linear.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>

#include "bench/peak.h"

namespace orrery::bench {
namespace {

// rows, depth, columns: the feed-forward layers of a small and of the 2B model, a square projection, a
// modulation.
void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "depth", "columns"});
  b->Args({1200, 1024, 4096})
      ->Args({1200, 4096, 1024})
      ->Args({4096, 2048, 2048})
      ->Args({512, 2048, 8192})
      ->Args({2, 2048, 6144});
  b->UseRealTime()->Unit(benchmark::kMillisecond);
}

template <class Call>
void time_linear(benchmark::State& state, at::ScalarType dtype, at::ScalarType weight_dtype,
                 const Call& call) {
  const int64_t rows = state.range(0), depth = state.range(1), columns = state.range(2);
  const Tensor x = at::randn({rows, depth}).to(dtype), weight = at::randn({columns, depth}).to(weight_dtype);
  for (auto _ : state) benchmark::DoNotOptimize(call(x, weight));
  report_flops(state, 2.0 * static_cast<double>(rows * depth * columns));
}

void linear(benchmark::State& state) {
  time_linear(state, at::kFloat, at::kFloat,
              [](const Tensor& x, const Tensor& w) { return ops::linear(x, w); });
}

void linear_gelu(benchmark::State& state) {
  time_linear(state, at::kFloat, at::kFloat,
              [](const Tensor& x, const Tensor& w) { return ops::linear(x, w, {}, ops::Activation::kGelu); });
}

void linear_mapped(benchmark::State& state) {
  time_linear(state, at::kFloat, at::kBFloat16,
              [](const Tensor& x, const Tensor& w) { return ops::linear(x, w); });
}

void linear_bfloat16(benchmark::State& state) {
  time_linear(state, at::kBFloat16, at::kBFloat16,
              [](const Tensor& x, const Tensor& w) { return ops::linear(x, w); });
}

// The first rung of the ladder: the BLAS of libtorch, whose bits depend on the number of rows.
void linear_library(benchmark::State& state) {
  time_linear(state, at::kFloat, at::kFloat,
              [](const Tensor& x, const Tensor& w) { return at::linear(x, w); });
}

BENCHMARK(linear)->Apply(shapes);
BENCHMARK(linear_gelu)->Apply(shapes);
BENCHMARK(linear_mapped)->Apply(shapes);
BENCHMARK(linear_bfloat16)->Apply(shapes);
BENCHMARK(linear_library)->Apply(shapes);

}  // namespace
}  // namespace orrery::bench
