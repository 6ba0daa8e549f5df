#include "orrery/ops/attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/randn.h>

#include "bench/peak.h"

namespace orrery::bench {
namespace {

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"queries", "keys", "heads", "width"});
  b->Args({1200, 1200, 16, 128})
      ->Args({1200, 512, 16, 128})
      ->Args({4000, 4000, 4, 128})
      ->Args({1200, 1200, 16, 64});
  b->UseRealTime()->Unit(benchmark::kMillisecond);
}

template <class Call>
void time_attention(benchmark::State& state, at::ScalarType dtype, const Call& call) {
  const int64_t queries = state.range(0), keys = state.range(1), heads = state.range(2),
                width = state.range(3);
  const Tensor q = at::randn({queries, heads, width}).to(dtype),
               k = at::randn({keys, heads, width}).to(dtype);
  const Tensor v = at::randn({keys, heads, width}).to(dtype);
  for (auto _ : state) benchmark::DoNotOptimize(call(q, k, v));
  report_flops(state, 4.0 * static_cast<double>(queries * keys * heads * width));
}

void attention(benchmark::State& state) {
  time_attention(state, at::kFloat,
                 [](const Tensor& q, const Tensor& k, const Tensor& v) { return ops::attention(q, k, v); });
}

void attention_bfloat16(benchmark::State& state) {
  time_attention(state, at::kBFloat16,
                 [](const Tensor& q, const Tensor& k, const Tensor& v) { return ops::attention(q, k, v); });
}

// The first rung of the ladder: libtorch's kernel, whose bits depend on the number of queries.
void attention_library(benchmark::State& state) {
  const auto batch = [](const Tensor& t) { return t.transpose(0, 1).unsqueeze(0); };
  time_attention(state, at::kFloat, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(batch(q), batch(k), batch(v)));
  });
}

BENCHMARK(attention)->Apply(shapes);
BENCHMARK(attention_bfloat16)->Apply(shapes);
BENCHMARK(attention_library)->Apply(shapes);

}  // namespace
}  // namespace orrery::bench
