// Spec qwen-image §1, §4 to §9. Origin: huggingface/diffusers 58eb52c0, pipelines/qwenimage/.
#include "orrery/pipeline/qwen_image.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/nn/patchify.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/pipeline/qwen_image_prompt.h"
#include "orrery/pipeline/steps.h"
#include "orrery/platform/memory.h"
#include "orrery/sample/guidance.h"
#include "orrery/sample/noise.h"

namespace orrery::pipeline {
namespace {

using nn::PictureSize;

// The largest area that the model card names, with some room: beyond, pictures repeat themselves.
constexpr int64_t kTrainedPixels = 1328 * 1328 * 5 / 4;

/// A request's parts that are the same for every picture that it makes.
struct Job {
  const QwenImageModel& model;
  const parallel::Team& team;
  const config::Request& request;
  const Hooks& hooks;
  qwen_image::Grid grid;  // the made picture, then the given ones
  Tensor given;           // [S_given, 4·C]: their latents, packed
  qwen_image::Prepared positive, negative;

  PictureSize made() const { return grid.pictures[0]; }
  bool guided() const { return request.guidance.value() > 1; }
};

PictureSize tokens_of(const QwenImageModel& m, int64_t height, int64_t width) {
  return {height / m.pixels_per_token(), width / m.pixels_per_token()};
}

/// The given pictures' latents, packed one after the other; their sizes are added to `sizes`.
Tensor encode_given(const QwenImageModel& m, const parallel::Team& team, const Given& pictures,
                    const Hooks& hooks, std::vector<PictureSize>& sizes) {
  std::vector<Tensor> packed;
  for (const auto& picture : pictures) {
    hooks.report("encode", std::ssize(packed), std::ssize(pictures));
    const auto resized = resized_to_area(picture, m.vae_area);
    sizes.push_back(tokens_of(m, resized.height, resized.width));
    const auto mean =
        wan_vae::encode(m.vae, m.vae_config, to_tensor(resized, /*bf16=*/false), vae_options(team, hooks));
    packed.push_back(
        nn::patchify(wan_vae::normalise(mean, m.vae_config, wan_vae::Statistics::kFloat32), m.config.patch));
  }
  return packed.empty() ? Tensor() : at::cat(packed, 0);
}

/// Packed noise [S, 4·C] of picture k, drawn in the compute type as the reference does.
Tensor initial_noise(const Job& job, int64_t k) {
  const auto& m = job.model;
  const auto size = job.made();
  if (job.request.init_latents) {
    const Tensor all = read_tensor(*job.request.init_latents, "latents");
    const Shape shape = {job.request.num_images.value(), size.tokens(), m.config.token_channels()};
    require(all.sizes() == at::IntArrayRef(shape), *job.request.init_latents, ": expected packed latents of ",
            at::IntArrayRef(shape), ", found ", all.sizes());
    return all[k].to(at::kFloat);
  }
  const Shape shape = {m.config.latent_channels, 1, size.rows * m.config.patch,
                       size.columns * m.config.patch};
  const int64_t seed = seed_of(job.request.seed.value(), k);
  const auto noise = sample::torch_noise(shape, sample::torch_generator(seed), m.dtype);
  return nn::patchify(noise.to(at::kFloat), m.config.patch);
}

/// The final latents of picture k, packed.
Tensor denoise(const Job& job, const qwen_image::Transformer& transformer, const std::vector<float>& sigmas,
               const std::vector<qwen_image::Step>& steps, int64_t k) {
  const auto velocity = [&](const parallel::Context& ctx, const Tensor& x, int64_t i,
                            parallel::BlockPolicy& policy) {
    const auto packed = job.given.defined() ? at::cat(std::vector<Tensor>{x, job.given}, 0) : x;
    const auto tokens = transformer.tokens(job.grid, packed);
    return sample::truly_guided(ctx, job.request.guidance.value(), [&](sample::Branch branch) {
      const auto& prompt = branch == sample::Branch::kPositive ? job.positive : job.negative;
      const auto& step = steps[static_cast<size_t>(i)];
      return parallel::run(ctx, transformer, prompt, step, tokens, policy).narrow(0, 0, x.size(0));
    });
  };
  return run_steps(
      job.team, {std::ssize(steps), transformer.block_count(), job.grid.tokens(), velocity},
      [&] { return solver(sample::FlowEuler(sigmas, initial_noise(job, k))); }, job.hooks);
}

/// Pictures on the run's first process.
media::Frames decode(const Job& job, const std::vector<Tensor>& latents) {
  const auto& m = job.model;
  const auto size = job.made();
  media::Frames frames;
  for (const Tensor& packed : latents) {
    job.hooks.report("decode", frames.count, std::ssize(latents));
    const auto z = wan_vae::denormalise(nn::unpack(packed, m.config.patch, 1, size.rows, size.columns),
                                        m.vae_config, wan_vae::Statistics::kFloat32);
    const auto keep = [&](const Tensor& pixels) {
      job.hooks.show(concat("pixels ", frames.count + 1), pixels);
      append(frames, pixels, /*truncate=*/false);
    };
    wan_vae::decode(m.vae, m.vae_config, z, keep, vae_options(job.team, job.hooks));
  }
  job.hooks.report("decode", std::ssize(latents), std::ssize(latents));
  return frames;
}

void prepare_text(Job& job, const qwen_image::Transformer& transformer, const Given& pictures) {
  const auto branch = job.team.branch();
  const Branches wanted = {.positive = branch != 1, .negative = job.guided() && branch != 0};
  const auto text = embed_prompts(job.model, job.request, pictures, wanted);
  job.hooks.show("text", text.positive), job.hooks.show("negative text", text.negative);
  if (text.positive.defined()) job.positive = transformer.prepare(job.grid, text.positive);
  if (text.negative.defined()) job.negative = transformer.prepare(job.grid, text.negative);
}

/// What runs, but may not look as expected.
void warn(const QwenImageModel& m, const config::Request& request) {
  if (*request.height * *request.width > kTrainedPixels)
    log::warn(*request.width, "x", *request.height,
              " is beyond the sizes that the model was trained for: ", "--aspect-ratio names those");
  bool lightning = false;
  for (const auto& lora : m.loras) lightning |= lora.path.find("ightning") != std::string::npos;
  if (request.lightning && m.loras.empty())
    log::warn("--lightning ", *request.lightning,
              " samples as a Lightning LoRA wants it; no --lora is given");
  if (lightning && !request.lightning)
    log::warn("a Lightning LoRA wants --lightning 4 or 8, its number of steps");
}

}  // namespace

Media make_pictures(const QwenImageModel& m, const parallel::Team& team, const config::Request& request,
                    const Given& pictures, const Hooks& hooks) {
  warn(m, request);
  const bool guided = request.guidance.value() > 1;
  const auto& ranks = team.for_branches(guided ? 2 : 1);
  if (&ranks != &team)
    log::info("guidance is off: all ", team.ranks(), " ranks share the sequence of the one branch");
  Job job{m, ranks, request, hooks, {}, {}, {}, {}};
  std::vector<PictureSize> sizes = {tokens_of(m, request.height.value(), request.width.value())};
  job.given = encode_given(m, ranks, pictures, hooks, sizes);
  std::vector<Tensor> latents;
  {
    const auto transformer = m.open_transformer();
    job.grid = transformer.grid(sizes);
    hooks.report("text");
    prepare_text(job, transformer, pictures);
    platform::release_free_memory();
    const auto sigmas = m.sigmas(request, job.made().tokens());
    std::vector<float> times;
    for (size_t i = 0; i + 1 < sigmas.size(); ++i) times.push_back(sample::flow_time(sigmas[i], m.dtype));
    const auto steps = transformer.steps(times);
    for (int64_t k = 0; k < request.num_images.value(); ++k)
      latents.push_back(denoise(job, transformer, sigmas, steps, k));
  }
  platform::release_free_memory();  // the transformer's buffers, before the VAE needs its own
  Media media;
  media.latents = at::stack(latents);
  media.frames = decode(job, latents);
  media.evaluations = request.num_images.value() * config::evaluations(request, /*karras=*/false);
  return media;
}

}  // namespace orrery::pipeline
