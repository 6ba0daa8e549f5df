#include "orrery/pipeline/predict.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "orrery/comm/collectives.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/platform/memory.h"
#include "orrery/sample/noise.h"

namespace orrery::pipeline {
namespace {

/// A request's parts that stay the same from clip to clip.
struct Job : CosmosRun {
  const PredictModel& model;
  cosmos::Prepared positive, negative;
};

Tensor draw_noise(const cosmos::Reference& reference, const Shape& shape, int64_t seed) {
  return reference.numpy_noise ? sample::numpy_noise(shape, seed)
                               : sample::torch_noise(shape, sample::torch_generator(seed));
}

/// One clip of num_frames frames that begins with the given ones.
Media make_clip(const Job& job, const media::Frames& given, int64_t seed) {
  const int64_t frames = job.request.num_frames.value();
  Clip clip;
  if (given.count > 0) job.hooks.report("encode");
  clip.given = encode_frames(job.model, job.reference, given, job.latent_shape(frames),
                             vae_options(job.team, job.hooks));
  clip.noise =
      initial_noise(job, frames, [&](const Shape& shape) { return draw_noise(job.reference, shape, seed); });
  clip.schedule = job.model.schedule(job.request);
  clip.guidance = job.guidance;
  clip.conditional_time = static_cast<float>(job.request.conditional_frame_timestep.value());
  Media video;
  {
    const auto transformer = job.model.open_transformer(job.reference);
    video.latents = denoise(predict_network(transformer, job.positive, job.negative, clip), job.reference,
                            job.team, clip, job.hooks);
  }
  platform::release_free_memory();  // the transformer's buffers, before the VAE needs its own
  video.frames = decode_frames(job, video.latents, frames);
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
  return frames_of(comm::broadcast(job.team.processes(), 0, rgb, spec));
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

Network<cosmos::Transformer> predict_network(const cosmos::Transformer& model,
                                             const cosmos::Prepared& positive,
                                             const cosmos::Prepared& negative, const Clip& clip) {
  const auto grid = model.grid(clip.noise.size(1), clip.noise.size(2), clip.noise.size(3));
  return {model,
          grid.tokens(),
          positive,
          negative,
          [&](const std::vector<float>& times) { return model.step(times); },
          [&, grid](const Tensor& x, int64_t) {
            return model.tokens(grid, lead(clip.given, x), clip.given.size(1));
          },
          [&, grid](const Tensor& tokens) { return model.velocity(grid, tokens); }};
}

Media predict(const PredictModel& model, const cosmos::Reference& reference, const parallel::Team& team,
              const config::Request& request, const media::Frames& given, const Hooks& hooks) {
  Job job{begin_run(model, reference, team, request, hooks), model, {}, {}};
  {
    const auto shape = job.latent_shape(request.num_frames.value());
    const auto transformer = model.open_transformer(reference);
    const auto grid = transformer.grid(shape[2], shape[3], shape[4]);
    if (job.text.positive.defined()) job.positive = transformer.prepare(grid, job.text.positive);
    if (job.text.negative.defined()) job.negative = transformer.prepare(grid, job.text.negative);
  }
  job.text = {};
  platform::release_free_memory();
  return request.enable_autoregressive.value_or(false) ? make_long(job, given)
                                                       : make_clip(job, given, request.seed.value());
}

}  // namespace orrery::pipeline
