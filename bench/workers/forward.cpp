// One forward of the transformer. INPUT holds latents [C, F, H, W], embeds [L, width] and sigma [1]. The
// operation `forward` leaves out what is computed once per prompt and clip, `prompt+forward` includes it.
#include "bench/workers/worker.h"
#include "orrery/models/cosmos/model.h"
#include "orrery/models/cosmos/reference.h"
#include "orrery/models/load.h"
#include "orrery/parallel/team.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::bench {
namespace {

struct Job {
  cosmos::Transformer model;
  parallel::Team team;
  Tensor latents, embeds;
  std::vector<float> times;

  cosmos::Grid grid() const { return model.grid(latents.size(1), latents.size(2), latents.size(3)); }

  Tensor forward(const cosmos::Grid& grid, const cosmos::Prepared& prepared) const {
    const auto step = model.step(times);
    const auto tokens = model.tokens(grid, latents, 0);
    return team.run([&](const parallel::Context& ctx) {
      parallel::BlockPolicy policy;
      return model.velocity(grid, parallel::run(ctx, model, prepared, step, tokens, policy));
    });
  }
};

cosmos::Transformer open(const Arguments& arguments) {
  const auto config =
      with_arithmetic(cosmos::read_transformer_config(arguments.model + "/config.json"), cosmos::kDiffusers);
  return {config, orrery::load<cosmos::TransformerWeights>(
                      weights::cosmos_names(weights::open_weights(arguments.model)), config, arguments.dtype,
                      weights::Storage::kWidened, arguments.model)};
}

Operations load(const Arguments& arguments) {
  const auto input = weights::open_safetensors(arguments.input);
  const auto& latents = input.at("latents");
  const float sigma = input.at("sigma").item<float>();
  const auto job =
      std::make_shared<const Job>(Job{open(arguments), parallel::Team({}, {}, arguments.threads), latents,
                                      input.at("embeds").to(arguments.dtype),
                                      std::vector<float>(static_cast<size_t>(latents.size(1)), sigma)});
  const auto grid = job->grid();
  const auto prepared = job->model.prepare(grid, job->embeds);
  const auto everything = [job] {
    const auto fresh = job->grid();
    return job->forward(fresh, job->model.prepare(fresh, job->embeds));
  };
  return {{"forward", timed([=] { return job->forward(grid, prepared); })},
          {"prompt+forward", timed(everything)}};
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) { return orrery::bench::worker_main(argc, argv, orrery::bench::load); }
