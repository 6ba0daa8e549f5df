// The Wan VAE at its published width on a short clip, and the two forms of its commonest convolution.
// Arguments: frames, rows, columns.
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "orrery/comm/run_ranks.h"
#include "orrery/ops/channel_norm.h"
#include "orrery/ops/conv.h"
#include "orrery/ops/conv_winograd.h"
#include "tests/support/wan_vae.h"

namespace orrery::bench {
namespace {

template <at::ScalarType dtype>
void encode(benchmark::State& state) {
  const c10::InferenceMode guard;
  const wan_vae::Config config;
  const auto weights = testing::random_vae(config, dtype);
  const Tensor pixels = at::rand({3, state.range(0), state.range(1), state.range(2)}) * 2 - 1;
  for (auto _ : state) benchmark::DoNotOptimize(wan_vae::encode(weights, config, pixels));
}

template <at::ScalarType dtype>
void decode(benchmark::State& state) {
  const c10::InferenceMode guard;
  const wan_vae::Config config;
  const auto weights = testing::random_vae(config, dtype);
  const Tensor latents =
      at::randn({16, config.latent_frames(state.range(0)), state.range(1) / 8, state.range(2) / 8});
  for (auto _ : state) benchmark::DoNotOptimize(wan_vae::decode(weights, config, latents));
}

BENCHMARK(encode<at::kFloat>)->Args({5, 96, 160})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(encode<at::kBFloat16>)->Args({5, 96, 160})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(decode<at::kFloat>)->Args({5, 96, 160})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(decode<at::kBFloat16>)->Args({5, 96, 160})->Unit(benchmark::kMillisecond)->UseRealTime();

/// Decoding shared by rows over thread ranks of one thread each. Compare them in turns:
/// --benchmark_filter=decode_shared --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
void decode_shared(benchmark::State& state) {
  const c10::InferenceMode guard;
  const wan_vae::Config config;
  static const auto weights = testing::random_vae(config);
  const Tensor latents = at::randn({16, config.latent_frames(5), 12, 20});
  for (auto _ : state) {
    const auto meshes = comm::make_thread_meshes({.ulysses = static_cast<int>(state.range(0))});
    comm::run_ranks(meshes, 1, [&](const comm::Mesh& mesh) {
      benchmark::DoNotOptimize(wan_vae::decode(weights, config, latents, {.group = &mesh.ulysses()}));
    });
  }
}

BENCHMARK(decode_shared)->ArgName("ranks")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

/// Four frames after two, 3×3×3; arguments: channels, rows, columns.
struct Level {
  explicit Level(const benchmark::State& state)
      : x(at::randn({6, state.range(1) + 2, state.range(2) + 2, state.range(0)})),
        weight(at::randn({state.range(0), state.range(0), 3, 3, 3})
                   .contiguous(at::MemoryFormat::ChannelsLast3d)),
        bias(at::randn({state.range(0)})) {}
  Tensor x, weight, bias;
};

void direct(benchmark::State& state) {
  const c10::InferenceMode guard;
  const Level level(state);
  for (auto _ : state) benchmark::DoNotOptimize(ops::conv(level.x, level.weight, level.bias));
}

void winograd(benchmark::State& state) {
  const c10::InferenceMode guard;
  const Level level(state);
  const Tensor weight = ops::winograd_weight(level.weight);
  for (auto _ : state) benchmark::DoNotOptimize(ops::conv_winograd(level.x, weight, level.bias));
}

void channel_norm(benchmark::State& state) {
  const c10::InferenceMode guard;
  const Tensor x = at::randn({4, state.range(1), state.range(2), state.range(0)});
  const Tensor weight = at::randn({state.range(0)}), out = at::empty(x.sizes());
  for (auto _ : state) ops::channel_norm(x, weight, /*silu=*/true, out);
}

BENCHMARK(direct)->Args({96, 96, 160})->Args({192, 48, 80})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(winograd)->Args({96, 96, 160})->Args({192, 48, 80})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(channel_norm)
    ->Args({96, 96, 160})
    ->Args({192, 48, 80})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace orrery::bench
