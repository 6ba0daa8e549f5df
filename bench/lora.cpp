// A layer of Qwen-Image's width with a LoRA: merged into its weight at load (weights/lora_merge.h) against
// two narrow layers beside it at run time, which leave the weight in its file. Merging wins: the narrow
// layers have 1 to 4 % of the operations, but they are two inefficient products and two more passes over the
// output. Milliseconds on one core of a Xeon with AVX-512 and AMX, least of 5 (OMP_NUM_THREADS=1
// --benchmark_filter=lora --benchmark_repetitions=5, CPU time):
//
//   rows                    64            1,024             4,096
//   rank (0: merged)    0   16   64     0   16   64     0   16   64
//   float32           8.1  8.1  8.9    96  102  107   399  414  454
//   float32, mapped   8.6  8.9  9.3   110  119  124   443  467  486
//   bfloat16          2.1  2.3  2.3    18   22   21    70   84   83
//
// Merging takes 13 ms (rank 16) or 19 ms (rank 64), once: a fifth of what the layer costs in one evaluation
// of 1,024 rows. Its price is memory, an adapted matrix in the compute type instead of the file's pages.
#include <ATen/ops/randn.h>

#include <filesystem>

#include "bench/peak.h"
#include "orrery/ops/linear.h"
#include "orrery/weights/lora_merge.h"
#include "orrery/weights/safetensors.h"

namespace orrery::bench {
namespace {

constexpr int64_t kWidth = 3072;

void rows_and_ranks(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "rank"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (int64_t rows : {64, 1024, 4096})
    for (int64_t rank : {0, 16, 64}) b->Args({rows, rank});
}

/// Rank 0: the layer alone, which is what a merged one costs.
void time_layer(benchmark::State& state, at::ScalarType dtype, at::ScalarType weight_dtype) {
  const int64_t rows = state.range(0), rank = state.range(1);
  const Tensor x = at::randn({rows, kWidth}).to(dtype), w = at::randn({kWidth, kWidth}).to(weight_dtype);
  const Tensor bias = at::randn({kWidth}).to(dtype);
  const Tensor down = at::randn({rank, kWidth}).to(dtype), up = at::randn({kWidth, rank}).to(dtype);
  for (auto _ : state) {
    Tensor y = ops::linear(x, w, bias);
    if (rank > 0) y.add_(ops::linear(ops::linear(x, down), up));
    benchmark::DoNotOptimize(y);
  }
  report_flops(state, 2.0 * static_cast<double>(rows * kWidth * (kWidth + 2 * rank)));
}

void lora(benchmark::State& state) { time_layer(state, at::kFloat, at::kFloat); }
void lora_mapped(benchmark::State& state) { time_layer(state, at::kFloat, at::kBFloat16); }
void lora_bfloat16(benchmark::State& state) { time_layer(state, at::kBFloat16, at::kBFloat16); }

/// Reading, checking and merging one layer's LoRA, once per load.
void lora_merge(benchmark::State& state) {
  const int64_t rank = state.range(0);
  const std::string path =
      (std::filesystem::temp_directory_path() / "orrery_bench_lora.safetensors").string();
  weights::write_safetensors(
      path, {{"m.lora_A.weight", at::randn({rank, kWidth})}, {"m.lora_B.weight", at::randn({kWidth, rank})}});
  const weights::TensorMap base{{"m.weight", at::randn({kWidth, kWidth}).to(at::kBFloat16)}};
  for (auto _ : state) {
    auto merged = base;
    weights::merge_loras(merged, std::vector<weights::LoraChoice>{{path}}, at::kBFloat16);
    benchmark::DoNotOptimize(merged);
  }
  report_flops(state, 2.0 * static_cast<double>(kWidth * kWidth * rank));
  std::filesystem::remove(path);
}

BENCHMARK(lora)->Apply(rows_and_ranks);
BENCHMARK(lora_mapped)->Apply(rows_and_ranks);
BENCHMARK(lora_bfloat16)->Apply(rows_and_ranks);
BENCHMARK(lora_merge)->ArgName("rank")->Arg(16)->Arg(64)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::bench
