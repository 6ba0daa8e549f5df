// Spec cosmos-predict2.5 §5 to §7. Origin: nvidia-cosmos/cosmos-predict2.5 50369b8,
// video2world_model_rectified_flow.py.
#include "orrery/pipeline/denoise.h"

#include <ATen/ops/cat.h>

#include "orrery/pipeline/steps.h"
#include "orrery/sample/guidance.h"
#include "orrery/sample/unipc.h"

namespace orrery::pipeline {
namespace {

using sample::Branch;

/// The first frames of `first`, then the remaining ones of `rest`: x·mask + y·(1 − mask) for a mask of
/// leading frames.
Tensor lead(const Tensor& first, const Tensor& rest) {
  const int64_t n = first.size(1);
  return n == 0 ? rest : at::cat(std::vector<Tensor>{first, rest.narrow(1, n, rest.size(1) - n)}, 1);
}

}  // namespace

Prompts prepare_prompts(const cosmos::Transformer& model, const PromptEmbeds& text, at::IntArrayRef latents) {
  const auto grid = model.grid(latents[1], latents[2], latents[3]);
  const auto prepare = [&](const Tensor& embeds) {
    return embeds.defined() ? model.prepare(grid, embeds) : cosmos::Prepared{};
  };
  return {prepare(text.positive), prepare(text.negative)};
}

Tensor denoise(const cosmos::Transformer& model, const cosmos::Reference& reference,
               const parallel::Team& team, const Prompts& prompts, const Clip& clip, const Hooks& hooks) {
  const auto grid = model.grid(clip.noise.size(1), clip.noise.size(2), clip.noise.size(3));
  const auto time_kind =
      reference.integer_time ? sample::NetworkTime::kTruncated : sample::NetworkTime::kSigma;
  const int64_t given = clip.given.size(1);
  const auto line = clip.noise.narrow(1, 0, given) - clip.given;
  const auto velocity = [&](const parallel::Context& ctx, const Tensor& x, int64_t i,
                            parallel::BlockPolicy& policy) {
    std::vector<float> times(static_cast<size_t>(grid.frames),
                             sample::network_time(clip.schedule, i, time_kind));
    if (clip.conditional_time >= 0) std::fill_n(times.begin(), given, clip.conditional_time);
    const auto step = model.step(times);
    const auto tokens = model.tokens(grid, lead(clip.given, x), given);
    return sample::guided(ctx, clip.guidance, [&](Branch branch) {
      const auto& prepared = branch == Branch::kPositive ? prompts.positive : prompts.negative;
      return lead(line, model.velocity(grid, parallel::run(ctx, model, prepared, step, tokens, policy)));
    });
  };
  return run_steps(
      team, {clip.schedule.evaluations(), model.block_count(), grid.tokens(), velocity},
      [&] { return solver(sample::UniPC(clip.schedule.sigmas, clip.noise)); }, hooks);
}

}  // namespace orrery::pipeline
