// Spec cosmos-transfer2.5 §2 to §5. Origin: nvidia-cosmos/cosmos-transfer2.5 2ff49d0,
// _src/transfer2/inference/inference_pipeline.py; diffusers 58eb52c,
// pipelines/cosmos/pipeline_cosmos2_5_transfer.py.
#include "orrery/pipeline/transfer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/comm/collectives.h"
#include "orrery/models/cosmos_transfer/weight_map.h"
#include "orrery/pipeline/denoise.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/pipeline/transfer_input.h"
#include "orrery/platform/memory.h"
#include "orrery/sample/chunk_seed.h"
#include "orrery/sample/noise.h"

namespace orrery::pipeline {
namespace {

using cosmos_transfer::Control;

/// A request's parts that stay the same from chunk to chunk.
struct Job : CosmosRun {
  const TransferModel& model;
  const TransferReference& rules;
  const Tensor& style;
  sample::ChunkPlan plan;
};

wan_vae::Options vae(const Job& job) { return vae_options(job.team, job.hooks); }

Shape latent_shape(const Job& job) { return job.latent_shape(job.plan.chunk_frames); }

/// The strengths of the request's controls on one chunk.
std::vector<std::vector<double>> weights_of(const std::vector<config::ControlRequest>& controls,
                                            bool normalize) {
  std::vector<std::vector<double>> weights;
  for (const auto& control : controls)
    weights.push_back(control.weights.empty() ? std::vector<double>{1} : control.weights);
  double sum = 0;
  for (const auto& w : weights) sum += w.front();
  if (normalize && sum > 1)
    for (auto& w : weights)
      for (double& one : w) one /= sum;
  return weights;
}

/// Hints and where they act. A control that is black all over is no control (§3.1).
std::vector<Control> controls_of(const Job& job, const ChunkInput& chunk) {
  const auto requests = config::controls_of(job.request);
  const auto weights = weights_of(requests, job.request.normalize_control_weights.value_or(false));
  std::vector<cosmos_transfer::ControlStrength> strengths;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto mask = chunk.masks.find(requests[i].name);
    strengths.push_back({weights[i].front(), mask == chunk.masks.end() ? nullptr : &mask->second});
  }
  const auto maps = cosmos_transfer::weight_maps(strengths, job.checkpoint.dtype);
  std::vector<Control> controls;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& frames = chunk.controls.at(requests[i].name);
    Control& control = controls.emplace_back();
    control.branch = job.model.branch(requests[i].name);
    const auto shape = latent_shape(job);
    control.hint = media::is_black(frames)
                       ? at::zeros(at::IntArrayRef(shape).slice(1))
                       : encode_frames(job.checkpoint, job.reference, frames, shape, vae(job));
    if (maps.empty())
      control.weights = weights[i];
    else
      control.map = maps[i];
  }
  return controls;
}

/// What guided generation keeps of the input (§4.6).
struct Kept {
  Tensor latents, mask;  // [C, T, h, w], [T, h, w]
  int64_t last_step = -1;
};

Kept kept_of(const Job& job, const ChunkInput& chunk) {
  if (!chunk.kept) return {};
  auto reference = job.reference;
  reference.bf16_pixels = false;
  return {encode_frames(job.checkpoint, reference, chunk.input, latent_shape(job), vae(job)),
          cosmos_transfer::reduce_mask(*chunk.kept, job.checkpoint.vae_config.spatial_factor()),
          job.request.guided_generation_step_threshold.value()};
}

/// What the network sees of sample x at a step: the solver's own sample is not replaced.
Tensor blended(const Kept& kept, const Clip& clip, const Tensor& x, int64_t step) {
  if (step > kept.last_step) return x;
  const float sigma = clip.schedule.sigmas[static_cast<size_t>(step)];
  return (kept.latents * (1 - sigma) + clip.noise * sigma) * kept.mask + x * (1 - kept.mask);
}

Network<cosmos_transfer::Transformer> network(const Job& job, const cosmos_transfer::Transformer& model,
                                              const std::vector<Control>& controls, const Clip& clip,
                                              const Kept& kept) {
  const auto grid = model.grid(clip.noise.size(1), clip.noise.size(2), clip.noise.size(3));
  const auto prepare = [&](const Tensor& embeds, const Tensor& style) {
    return embeds.defined() ? model.prepare(grid, embeds, style, controls) : cosmos_transfer::Prepared{};
  };
  auto positive = prepare(job.text.positive, job.style);
  auto negative = prepare(job.text.negative, {});  // without the style (§2.3)
  // Both prompts act with the same controls; a process may have one of them only.
  auto any = job.text.positive.defined() ? positive : negative;
  return {model,
          grid.tokens(),
          std::move(positive),
          std::move(negative),
          [&model, any = std::move(any)](const std::vector<float>& times) { return model.step(any, times); },
          [&, grid](const Tensor& x, int64_t step) {
            return model.tokens(grid, lead(clip.given, blended(kept, clip, x, step)), clip.given.size(1),
                                controls);
          },
          [&model, grid](const Tensor& tokens) { return model.velocity(grid, tokens); }};
}

/// A hint as it acted: black where its mask excludes it.
media::Frames shown(const media::Frames& control, const media::Mask* mask) {
  media::Frames out = control;
  if (mask)
    for (size_t i = 0; i < mask->levels.size(); ++i)
      if (mask->levels[i] == 0) std::fill_n(out.rgb.begin() + static_cast<int64_t>(3 * i), 3, uint8_t{0});
  return out;
}

media::Frames grey(const media::Mask& mask) {
  media::Frames out{mask.count, mask.height, mask.width, {}};
  for (const uint8_t level : mask.levels) out.rgb.insert(out.rgb.end(), 3, level);
  return out;
}

/// The chunk's own frames: without those of the chunk before, and none behind the input's end.
media::Frames own(const media::Frames& frames, const sample::ClipChunk& chunk) {
  return media::slice(frames, chunk.overlap, chunk.end - chunk.begin - chunk.overlap);
}

std::map<std::string, media::Frames> clips_of(const Job& job, const ChunkInput& input,
                                              const media::Frames& video, const sample::ClipChunk& chunk) {
  std::map<std::string, media::Frames> clips = {{"video", own(video, chunk)}};
  for (const auto& [name, frames] : input.controls) {
    const auto mask = input.masks.find(name);
    clips[name] = own(shown(frames, mask == input.masks.end() ? nullptr : &mask->second), chunk);
  }
  if (job.request.show_input.value_or(false)) clips["input"] = own(input.input, chunk);
  if (input.kept) clips["guided"] = own(grey(*input.kept), chunk);
  return clips;
}

/// The last frames of the first process's chunk as the next chunk is given them.
Tensor carried(const Job& job, const media::Frames& video, const Tensor& pixels) {
  const int64_t count = job.request.chunk_overlap.value();
  if (!job.rules.carries_bytes)
    return pixels.narrow(1, pixels.size(1) - count, count).clamp(-1, 1).contiguous();
  return to_tensor(media::slice(video, video.count - count, count), job.reference.bf16_pixels);
}

/// For all processes what the first one has.
Tensor on_all(const Job& job, const Tensor& carried) {
  const auto& r = job.request;
  const TensorSpec spec{{3, r.chunk_overlap.value(), r.height.value(), r.width.value()}, at::kFloat};
  return comm::broadcast(job.team.processes(), 0, carried, spec);
}

/// Latents of the given frames: the first carried one (§4.2).
Tensor given_latents(const Job& job, const sample::ClipChunk& chunk, const Tensor& carried) {
  const auto shape = latent_shape(job);
  if (chunk.conditional == 0) return encode_frames(job.checkpoint, job.reference, {}, shape);
  return encode_pixels(job.checkpoint, job.reference, carried.narrow(1, 0, 1), vae(job));
}

/// Makes one chunk; its frames, and what the next one is given, come to the first process.
Chunk make_chunk(const Job& job, const ChunkInput& input, const sample::ClipChunk& chunk,
                 const Tensor& before, const Tensor& noise, Media& media) {
  job.hooks.report("encode");
  Clip clip{noise,
            given_latents(job, chunk, before),
            job.model.schedule(job.request),
            job.guidance,
            static_cast<float>(job.request.conditional_frame_timestep.value()),
            job.rules.few_step};
  const auto controls = controls_of(job, input);
  const auto kept = kept_of(job, input);
  platform::release_free_memory();
  {
    const auto transformer = job.model.open_transformer(job.reference);
    media.latents =
        denoise(network(job, transformer, controls, clip, kept), job.reference, job.team, clip, job.hooks);
  }
  platform::release_free_memory();
  media.evaluations += clip.schedule.evaluations();
  std::vector<Tensor> last;  // the pixels decoded last, at least as many frames as are carried
  const auto video =
      decode_frames(job, media.latents, job.plan.chunk_frames, chunk.begin, [&](const Tensor& p) {
        last.push_back(p);
        while (last.size() > 2) last.erase(last.begin());
      });
  media.latents = media.latents.unsqueeze(0);
  if (video.count == 0) return {};
  return {clips_of(job, input, video, chunk), carried(job, video, at::cat(last, 1))};
}

/// The noise of one chunk after the other, whether it is needed or not.
class Noise {
 public:
  Noise(const Job& job)
      : job_(job), seed_(job.request.seed.value()), generator_(sample::torch_generator(seed_)) {}

  Tensor next() {
    if (job_.rules.chained_seeds)
      seed_ = sample::next_chunk_seed(seed_), generator_ = sample::torch_generator(seed_);
    return initial_noise(job_, job_.plan.chunk_frames, [&](const Shape& shape) {
      return job_.reference.numpy_noise ? sample::numpy_noise(shape, seed_)
                                        : sample::torch_noise(shape, generator_);
    });
  }

 private:
  const Job& job_;
  int64_t seed_;
  at::Generator generator_;
};

/// How many chunks the first process has.
int64_t finished(const Job& job, const ChunkStore& done) {
  const auto count = at::full({1}, done.size(), at::kLong);
  return comm::broadcast(job.team.processes(), 0, count, {{1}, at::kLong}).item<int64_t>();
}

}  // namespace

Media transfer(const TransferModel& model, const TransferReference& rules, const parallel::Team& team,
               const config::Request& request, const Tensor& style, ChunkStore& done, const Hooks& hooks) {
  // Every chunk has steps and blocks of its own.
  int64_t k = 0;
  Hooks watching = hooks;
  if (hooks.observe)
    watching.observe = [&](const std::string& what, const Tensor& value) {
      hooks.observe(k == 0 ? what : concat("chunk ", k + 1, " ", what), value);
    };
  Job job{begin_run(model, rules.cosmos, team, request, watching), model, rules, style, chunks_of(request)};
  const bool keeps = team.leads();
  Media media;
  Noise noise(job);
  TransferInput input(request,
                      rules.mirrored ? sample::ChunkPadding::kMirror : sample::ChunkPadding::kRepeatLast);
  const int64_t made = finished(job, done), chunks = std::ssize(job.plan.chunks);
  Tensor before;
  for (; k < chunks; ++k) {
    const auto start = noise.next();
    const auto& chunk = job.plan.chunks[static_cast<size_t>(k)];
    if (k >= made) {
      Chunk fresh = make_chunk(job, input.chunk(k), chunk, before, start, media);
      if (keeps) done.add(std::move(fresh));
    }
    if (k + 1 < chunks && job.request.chunk_overlap.value() > 0 && k + 1 >= made)
      before = on_all(job, keeps ? done.carried(k) : Tensor());
  }
  return media;
}

}  // namespace orrery::pipeline
