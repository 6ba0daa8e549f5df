// One evaluation of a Cosmos-Transfer network with one control. MODEL holds transformer/ and controlnet/;
// INPUT latents and hint [C, F, H, W], embeds [L, width] and sigma [1]. The operation `forward` has the
// control at full strength, `weight-0` has it at none, and `alone` has no control. What is computed once per
// prompt and clip is left out.
#include "bench/workers/worker.h"
#include "orrery/models/cosmos/reference.h"
#include "orrery/models/cosmos_transfer/model.h"
#include "orrery/models/load.h"
#include "orrery/parallel/team.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"

namespace orrery::bench {
namespace {

using cosmos_transfer::Control;

struct Job {
  cosmos_transfer::Transformer model;
  parallel::Team team;
  Tensor latents, embeds;
  std::vector<float> times;

  /// Evaluates with these controls, again and again.
  std::function<Tensor()> operation(const std::vector<Control>& controls) const {
    const auto grid = model.grid(latents.size(1), latents.size(2), latents.size(3));
    const auto prepared = model.prepare(grid, embeds, {}, controls);
    return [this, grid, prepared, controls] {
      const auto step = model.step(prepared, times);
      const auto tokens = model.tokens(grid, latents, 0, controls);
      return team.run([&](const parallel::Context& ctx) {
        parallel::BlockPolicy policy;
        return model.velocity(grid, parallel::run(ctx, model, prepared, step, tokens, policy));
      });
    };
  }
};

cosmos_transfer::Transformer open(const Arguments& arguments) {
  const std::string base = arguments.model + "/transformer", control = arguments.model + "/controlnet";
  auto config =
      cosmos_transfer::read_transformer_config(base + "/config.json", {control + "/config.json"}, {"edge"});
  config.base = with_arithmetic(config.base, cosmos::kDiffusers);
  auto tensors =
      cosmos_transfer::assemble(weights::cosmos_names(weights::open_weights(base)),
                                {{"edge", weights::cosmos_control_names(weights::open_weights(control))}});
  return {config,
          orrery::load<cosmos_transfer::TransformerWeights>(std::move(tensors), config, arguments.dtype,
                                                            weights::Storage::kWidened, arguments.model)};
}

Operations load(const Arguments& arguments) {
  const auto input = weights::open_safetensors(arguments.input);
  const auto& latents = input.at("latents");
  const auto job = std::make_shared<const Job>(
      Job{open(arguments), parallel::Team({}, {}, arguments.threads), latents,
          input.at("embeds").to(arguments.dtype),
          std::vector<float>(static_cast<size_t>(latents.size(1)), input.at("sigma").item<float>())});
  const auto with = [&](std::vector<Control> controls) {
    return timed([job, run = job->operation(std::move(controls))] { return run(); });
  };
  const Control full{.branch = 0, .hint = input.at("hint")},
      none{.branch = 0, .hint = full.hint, .weights = {0}};
  return {{"forward", with({full})}, {"weight-0", with({none})}, {"alone", with({})}};
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) { return orrery::bench::worker_main(argc, argv, orrery::bench::load); }
