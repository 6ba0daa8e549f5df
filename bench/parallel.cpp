// What ranks gain: evaluations of a mid-size Cosmos transformer (both guidance branches, prompt known) on one
// rank and on two thread ranks, in turn. Started by bench/parallel, which says how to read it.
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "orrery/base/clock.h"
#include "orrery/comm/recording.h"
#include "orrery/comm/run_ranks.h"
#include "orrery/models/cosmos/model.h"
#include "orrery/parallel/tuning.h"
#include "orrery/platform/memory.h"
#include "orrery/platform/thread.h"
#include "orrery/sample/guidance.h"

namespace orrery::bench {
namespace {

/// Random weights that keep activations of order one: matrices with variance 1 / fan-in, norms of one.
class Randomise final : public nn::Visitor<Randomise> {
 public:
  void tensor(const std::string&, Tensor& t, const Shape& shape) {
    t = shape.size() < 2 ? at::ones(shape) : at::randn(shape) / std::sqrt(static_cast<double>(shape[1]));
  }
};

/// The model and the clip of bench/compare's forward: width 1,024, 8 blocks, 1,200 tokens, 512 text tokens.
struct Job {
  cosmos::Transformer model = random_model();
  cosmos::Grid grid = model.grid(5, 24, 40);
  cosmos::Prepared positive = model.prepare(grid, at::randn({512, 4096})),
                   negative = model.prepare(grid, at::randn({512, 4096}));
  cosmos::Step step = model.step(std::vector<float>(5, 0.7f));
  parallel::Tokens tokens = model.tokens(grid, at::randn({16, 5, 24, 40}), 0);

  static cosmos::Transformer random_model() {
    cosmos::TransformerConfig config;
    config.heads = 8, config.layers = 8, config.text_input_width = 4096;
    cosmos::TransformerWeights weights;
    Randomise visitor;
    bind(visitor, weights, config);
    return {config, std::move(weights)};
  }

  void evaluate(const parallel::Context& ctx) const {
    parallel::BlockPolicy policy;
    sample::guided(ctx, 3, [&](sample::Branch branch) {
      const auto& prompt = branch == sample::Branch::kPositive ? positive : negative;
      return parallel::run(ctx, model, prompt, step, tokens, policy);
    });
  }
};

/// One way to run the job, and what its runs took.
struct Way {
  const char* name;
  comm::MeshShape mesh;
  int threads;  // of each rank
  double bar;   // times as fast as one rank on one thread
  std::vector<parallel::Tuning> tuning =
      std::vector<parallel::Tuning>(static_cast<size_t>(mesh.size()), parallel::Tuning({}));
  std::vector<double> seconds = {}, waited = {};  // waited: share of the time, mean over the ranks

  void run(const Job& job) {
    comm::Recorder recorder;
    const auto meshes = comm::make_thread_meshes(mesh, recorder.decorate());
    const config::Plan plan;
    const Stopwatch watch;
    comm::run_ranks(meshes, threads, [&](const comm::Mesh& mine) {
      job.evaluate({mine, plan, tuning[static_cast<size_t>(mine.rank())]});
    });
    seconds.push_back(watch.seconds());
    double sum = 0;
    for (int rank = 0; rank < mesh.size(); ++rank) sum += recorder.waited(rank);
    waited.push_back(sum / mesh.size() / seconds.back());
  }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int compare(int rounds) {
  const Job job;
  std::vector<Way> ways = {{"1 rank, 1 thread", {}, 1, 0},
                           {"1 rank, 2 threads", {}, 2, 0},
                           {"cfg2", {.cfg = 2}, 1, 1.9},
                           {"u2", {.ulysses = 2}, 1, 1.8},
                           {"r2", {.ring = 2}, 1, 1.7}};
  for (int round = -1; round < rounds; ++round)
    for (Way& way : ways) {
      way.run(job);
      if (round < 0) way.seconds.clear(), way.waited.clear();  // pays for fresh memory and for trials
    }
  constexpr double kBarOfThreads = 0.95;  // two ranks against one rank with the same two cores
  const double one = median(ways[0].seconds), threads = median(ways[1].seconds);
  std::printf("%-20s%12s%12s%8s%20s%8s%12s\n", "", "seconds", "speed-up", "bar", "of 1 rank on 2", "bar",
              "waiting");
  int missed = 0;
  for (const Way& way : ways) {
    const double seconds = median(way.seconds), gain = one / seconds, share = threads / seconds;
    std::printf("%-20s%12.3f%11.2fx", way.name, seconds, gain);
    if (way.bar > 0) {
      const bool good = gain >= way.bar && share >= kBarOfThreads;
      std::printf("%7.1fx%19.2fx%7.2fx%11.1f%%%s", way.bar, share, kBarOfThreads, 100 * median(way.waited),
                  good ? "" : "  TOO SLOW");
      missed += !good;
    }
    std::printf("\n");
  }
  return missed;
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
  orrery::platform::tune_malloc();
  const c10::InferenceMode inference;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;
  if (argc != 2 || rounds < 1) return std::fprintf(stderr, "usage: %s ROUNDS\n", argv[0]), 2;
  return orrery::bench::compare(rounds) > 0;
}
