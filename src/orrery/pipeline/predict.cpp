#include "orrery/pipeline/predict.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/comm/collectives.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/platform/memory.h"
#include "orrery/sample/noise.h"

namespace orrery::pipeline {
namespace {

/// A request's parts that stay the same from chunk to chunk.
struct Job {
  const PredictModel& model;
  const cosmos::Reference& reference;
  const parallel::Team& team;
  const config::Request& request;
  const Hooks& hooks;
  Prompts prompts;

  int64_t latent_frames() const { return model.vae_config.latent_frames(request.num_frames.value()); }
  Shape latent_shape() const {
    const int64_t f = model.vae_config.spatial_factor();
    return {1, model.vae_config.z_dim, latent_frames(), request.height.value() / f,
            request.width.value() / f};
  }
};

double effective_guidance(const config::Request& request, const cosmos::Reference& reference) {
  const double g = request.guidance.value();
  return g <= reference.skip_guidance_up_to ? 0 : g;
}

Tensor initial_noise(const Job& job, int64_t seed) {
  const Shape shape = job.latent_shape();
  if (!job.request.init_latents)
    return (job.reference.numpy_noise ? sample::numpy_noise(shape, seed)
                                      : sample::torch_noise(shape, sample::torch_generator(seed)))[0];
  const Tensor latents = read_tensor(*job.request.init_latents, "latents");
  require(latents.sizes() == at::IntArrayRef(shape), *job.request.init_latents, ": expected latents of ",
          at::IntArrayRef(shape), ", found ", latents.sizes());
  return latents.to(at::kFloat)[0];
}

wan_vae::Statistics statistics(const cosmos::Reference& reference) {
  return reference.bf16_latent_statistics ? wan_vae::Statistics::kBfloat16 : wan_vae::Statistics::kFloat32;
}

/// No frames but for the first process.
media::Frames decode(const Job& job, const Tensor& latents) {
  media::Frames frames;
  const int64_t total = job.request.num_frames.value();
  job.hooks.report("decode", 0, total);
  const auto z = wan_vae::denormalise(latents, job.model.vae_config, statistics(job.reference));
  const auto keep = [&](const Tensor& chunk) {
    if (frames.count == 0) frames.rgb.reserve(static_cast<size_t>(total * chunk[0][0].numel() * 3));
    job.hooks.show(concat("pixels ", frames.count + 1), chunk);
    append(frames, chunk, job.reference.truncate_pixels);
    job.hooks.report("decode", frames.count, total);
  };
  wan_vae::decode(job.model.vae, job.model.vae_config, z, keep, vae_options(job.team, job.hooks));
  return frames;
}

/// One clip of num_frames frames that begins with the given ones.
Media make_clip(const Job& job, const media::Frames& given, int64_t seed) {
  Clip clip;
  if (given.count > 0) job.hooks.report("encode");
  clip.given =
      encode_given(job.model, job.reference, given, job.latent_shape(), vae_options(job.team, job.hooks));
  clip.noise = initial_noise(job, seed);
  clip.schedule = job.model.schedule(job.request);
  clip.guidance = effective_guidance(job.request, job.reference);
  clip.conditional_time = static_cast<float>(job.request.conditional_frame_timestep.value());
  Media video;
  video.latents = denoise(job.model.open_transformer(job.reference), job.reference, job.team, job.prompts,
                          clip, job.hooks);
  platform::release_free_memory();  // the transformer's buffers, before the VAE needs its own
  video.frames = decode(job, video.latents);
  video.evaluations = clip.schedule.evaluations();
  return video;
}

/// The last `count` of the first process's frames, for all processes.
media::Frames last_frames(const Job& job, const media::Frames& frames, int64_t count) {
  const int64_t height = job.request.height.value(), width = job.request.width.value();
  const TensorSpec spec{{count, height, width, 3}, at::kByte};
  Tensor rgb;
  if (frames.count > 0) {
    rgb = at::empty(spec.shape, spec.dtype);
    std::copy(frames.rgb.end() - rgb.numel(), frames.rgb.end(), rgb.mutable_data_ptr<uint8_t>());
  }
  rgb = comm::broadcast(job.team.processes(), 0, rgb, spec);
  const uint8_t* begin = rgb.const_data_ptr<uint8_t>();
  return {count, height, width, {begin, begin + rgb.numel()}};
}

/// Frames [begin, end) of `part` are added to `frames`.
void add(media::Frames& frames, const media::Frames& part, int64_t begin, int64_t end) {
  if (part.count == 0) return;
  const auto at = [&](int64_t f) { return part.rgb.begin() + f * part.frame_bytes(); };
  frames.height = part.height, frames.width = part.width, frames.count += end - begin;
  frames.rgb.insert(frames.rgb.end(), at(begin), at(end));
}

/// Chunk after chunk, each given the last frames of the one before (§9.6).
Media make_long(const Job& job, media::Frames given) {
  const int64_t total = job.request.num_output_frames.value(), overlap = job.request.chunk_overlap.value();
  const int64_t chunk = std::min(job.request.chunk_size.value(), job.request.num_frames.value());
  Media video;
  for (int64_t k = 0, begin = 0;; ++k, begin += chunk - overlap) {
    const int64_t wanted = std::min(chunk, total - begin);
    const Media part = make_clip(job, given, job.request.seed.value() + k);
    add(video.frames, part.frames, k == 0 ? 0 : overlap, wanted);
    video.latents = part.latents, video.evaluations += part.evaluations;
    if (begin + wanted >= total) return video;
    given = last_frames(job, video.frames, overlap);
  }
}

}  // namespace

bool encodes(const config::Request& request) {
  return request.num_latent_conditional_frames.value() > 0 || request.enable_autoregressive.value_or(false);
}

Tensor encode_given(const PredictModel& model, const cosmos::Reference& reference,
                    const media::Frames& frames, const Shape& latents, const wan_vae::Options& options) {
  if (frames.count == 0) return at::zeros({latents[1], 0, latents[3], latents[4]});
  const auto mean =
      wan_vae::encode(model.vae, model.vae_config, to_tensor(frames, reference.bf16_pixels), options);
  return wan_vae::normalise(mean, model.vae_config, statistics(reference));
}

Media predict(const PredictModel& model, const cosmos::Reference& reference, const parallel::Team& team,
              const config::Request& request, const media::Frames& given, const Hooks& hooks) {
  hooks.report("text");
  const bool guided = effective_guidance(request, reference) != 0;
  const auto& ranks = team.for_branches(guided ? 2 : 1);
  if (&ranks != &team)
    log::info("guidance is 0: all ", team.ranks(), " ranks share the sequence of the one branch");
  Job job{model, reference, ranks, request, hooks, {}};
  const auto branch = ranks.branch();
  const Branches wanted = {.positive = branch != 1, .negative = guided && branch != 0};
  const auto text = embed_prompts(model, request, wanted);
  hooks.show("text", text.positive), hooks.show("negative text", text.negative);
  job.prompts =
      prepare_prompts(model.open_transformer(reference), text, at::IntArrayRef(job.latent_shape()).slice(1));
  platform::release_free_memory();
  return request.enable_autoregressive.value_or(false) ? make_long(job, given)
                                                       : make_clip(job, given, request.seed.value());
}

}  // namespace orrery::pipeline
