// One forward of the Qwen-Image transformer. INPUT holds the packed latents of a picture [rows, columns, C],
// embeds [L, width] and sigma [1]. The operation `forward` leaves out the modulation, which a run computes
// for all its steps at once; `time+forward` includes it. The text changes in every block: both read it in
// anew.
#include "bench/workers/worker.h"
#include "orrery/models/load.h"
#include "orrery/models/qwen_image/model.h"
#include "orrery/parallel/team.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::bench {
namespace {

struct Job {
  qwen_image::Transformer model;
  parallel::Team team;
  qwen_image::Grid grid;  // known beforehand: diffusers, too, keeps a size's rotations from call to call
  Tensor packed, embeds;

  Tensor forward(const qwen_image::Step& step) const {
    const auto prepared = model.prepare(grid, embeds);
    const auto tokens = model.tokens(grid, packed);
    return team.run([&](const parallel::Context& ctx) {
      parallel::BlockPolicy policy;
      return parallel::run(ctx, model, prepared, step, tokens, policy);
    });
  }
};

qwen_image::Transformer open(const Arguments& arguments) {
  const auto config = qwen_image::read_transformer_config(arguments.model + "/config.json");
  return {config, orrery::load<qwen_image::TransformerWeights>(
                      weights::qwen_image_names(weights::open_weights(arguments.model)), config,
                      arguments.dtype, weights::Storage::kWidened, arguments.model)};
}

Operations load(const Arguments& arguments) {
  const auto input = weights::open_safetensors(arguments.input);
  const auto& latents = input.at("latents");
  const std::vector<float> times = {input.at("sigma").item<float>()};
  auto model = open(arguments);
  auto grid = model.grid({{latents.size(0), latents.size(1)}});
  const auto job = std::make_shared<const Job>(
      Job{std::move(model), parallel::Team({}, {}, arguments.threads), std::move(grid), latents.flatten(0, 1),
          input.at("embeds").to(arguments.dtype)});
  const auto step = job->model.steps(times)[0];
  return {{"forward", timed([=] { return job->forward(step); })},
          {"time+forward", timed([=] { return job->forward(job->model.steps(times)[0]); })}};
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) { return orrery::bench::worker_main(argc, argv, orrery::bench::load); }
