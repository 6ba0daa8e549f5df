#include "orrery/pipeline/cosmos_run.h"

#include <ATen/ops/zeros.h>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/platform/memory.h"

namespace orrery::pipeline {
namespace {

wan_vae::Statistics statistics(const cosmos::Reference& reference) {
  return reference.bf16_latent_statistics ? wan_vae::Statistics::kBfloat16 : wan_vae::Statistics::kFloat32;
}

}  // namespace

Shape CosmosRun::latent_shape(int64_t frames) const {
  const auto& vae = checkpoint.vae_config;
  const int64_t f = vae.spatial_factor();
  return {1, vae.z_dim, vae.latent_frames(frames), request.height.value() / f, request.width.value() / f};
}

CosmosRun begin_run(const CosmosCheckpoint& checkpoint, const cosmos::Reference& reference,
                    const parallel::Team& team, const config::Request& request, const Hooks& hooks) {
  hooks.report("text");
  const double g = request.guidance.value();
  const bool guided = g > reference.skip_guidance_up_to;
  const auto& ranks = team.for_branches(guided ? 2 : 1);
  if (&ranks != &team)
    log::info("guidance is off: all ", team.ranks(), " ranks share the sequence of the one branch");
  const auto branch = ranks.branch();
  const Branches wanted = {.positive = branch != 1, .negative = guided && branch != 0};
  CosmosRun run{checkpoint, reference, ranks, request, hooks, guided ? g : 0, {}};
  run.text = embed_prompts(checkpoint, request, wanted);
  hooks.show("text", run.text.positive), hooks.show("negative text", run.text.negative);
  platform::release_free_memory();
  return run;
}

Tensor initial_noise(const CosmosRun& run, int64_t frames, const std::function<Tensor(const Shape&)>& draw) {
  const Shape shape = run.latent_shape(frames);
  const auto& file = run.request.init_latents;
  if (!file) return draw(shape)[0];
  const Tensor latents = read_tensor(*file, "latents");
  require(latents.sizes() == at::IntArrayRef(shape), *file, ": expected latents of ", at::IntArrayRef(shape),
          ", found ", latents.sizes());
  return latents.to(at::kFloat)[0];
}

Tensor encode_frames(const Checkpoint& checkpoint, const cosmos::Reference& reference,
                     const media::Frames& frames, const Shape& latents, const wan_vae::Options& options) {
  if (frames.count == 0) return at::zeros({latents[1], 0, latents[3], latents[4]});
  return encode_pixels(checkpoint, reference, to_tensor(frames, reference.bf16_pixels), options);
}

Tensor encode_pixels(const Checkpoint& checkpoint, const cosmos::Reference& reference, const Tensor& pixels,
                     const wan_vae::Options& options) {
  const auto mean = wan_vae::encode(checkpoint.vae, checkpoint.vae_config, pixels, options);
  return wan_vae::normalise(mean, checkpoint.vae_config, statistics(reference));
}

media::Frames decode_frames(const CosmosRun& run, const Tensor& latents, int64_t total, int64_t first,
                            const std::function<void(const Tensor&)>& also) {
  media::Frames frames;
  run.hooks.report("decode", 0, total);
  const auto& vae = run.checkpoint;
  const auto z = wan_vae::denormalise(latents, vae.vae_config, statistics(run.reference));
  const auto keep = [&](const Tensor& chunk) {
    if (frames.count == 0) frames.rgb.reserve(static_cast<size_t>(total * chunk[0][0].numel() * 3));
    run.hooks.show(concat("pixels ", first + frames.count + 1), chunk);
    append(frames, chunk, run.reference.truncate_pixels);
    if (also) also(chunk);
    run.hooks.report("decode", frames.count, total);
  };
  wan_vae::decode(vae.vae, vae.vae_config, z, keep, vae_options(run.team, run.hooks));
  return frames;
}

}  // namespace orrery::pipeline
