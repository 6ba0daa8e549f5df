// Whole requests against diffusers' Cosmos2_5_PredictBasePipeline and against the official sampler
// (tests/golden/pipelines).
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/pipeline/pixels.h"
#include "orrery/pipeline/predict.h"
#include "orrery/sample/noise.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;
using Tensors = std::map<std::string, Tensor>;

/// The last 4(n − 1) + 1 of the frames that a case brings.
media::Frames given_frames(const Tensors& tensors, const std::string& name, int64_t latent) {
  for (const char* key : {"/image", "/video", "/frames"})
    if (const auto found = tensors.find(name + key); found != tensors.end()) {
      const auto& t = found->second;
      const int64_t wanted = 4 * (latent - 1) + 1;
      return pipeline::frames_of(t.dim() == 3 ? t.unsqueeze(0) : t.narrow(0, t.size(0) - wanted, wanted));
    }
  return {};
}

pipeline::PredictModel open(const fs::path& folder) {
  config::Settings settings;
  settings.model = folder;
  auto model = pipeline::open_predict_model(settings, at::kFloat);
  pipeline::load_weights(model, config::WeightStorage::kAuto);
  pipeline::load_encoder(model);
  return model;
}

struct Tolerance {
  double latents, decoded;
};

Tolerance tolerance_of(const Json& description) {
  const auto& t = description["tolerance"]["float32"];
  return {t["latents max_abs_over_rms"], t["decoded max_abs"]};
}

config::Request request_of(const Json& c) {
  config::Request r;
  r.prompt = c["prompt"], r.negative_prompt = c["negative_prompt"];
  r.height = c["height"], r.width = c["width"], r.num_frames = c["num_frames"];
  if (c.contains("max_sequence_length")) r.max_sequence_length = c["max_sequence_length"].get<int64_t>();
  return r;
}

/// Denoises and decodes a case and compares each state that it stores.
void check(const pipeline::PredictModel& model, const cosmos::Reference& reference, const Tensors& tensors,
           const Json& c, const pipeline::Clip& clip, const config::Factors& factors, Tolerance tolerance,
           const fs::path& where) {
  const std::string name = c["name"];
  const auto text =
      pipeline::embed_prompts(model, request_of(c), {.positive = true, .negative = clip.guidance != 0});
  const parallel::Team team({}, factors, 2);
  const auto transformer = model.open_transformer(reference);
  const auto& after = tensors.at(name + "/latents_after_step");
  int64_t step = 0;
  pipeline::Hooks hooks;
  hooks.observe = [&](const std::string& what, const Tensor& x) {
    if (!what.starts_with("step ")) return;
    EXPECT_LE(max_abs_over_rms(x, after[step][0]), tolerance.latents) << where << " " << name << " " << what;
    ++step;
  };
  const auto grid = transformer.grid(clip.noise.size(1), clip.noise.size(2), clip.noise.size(3));
  const auto prepare = [&](const Tensor& embeds) {
    return embeds.defined() ? transformer.prepare(grid, embeds) : cosmos::Prepared{};
  };
  const auto network =
      pipeline::predict_network(transformer, prepare(text.positive), prepare(text.negative), clip);
  const auto latents = pipeline::denoise(network, reference, team, clip, hooks);
  EXPECT_EQ(step, after.size(0)) << where << " " << name;
  EXPECT_LE(max_abs_over_rms(latents, tensors.at(name + "/latents")[0]), tolerance.latents)
      << where << " " << name;
  const auto pixels =
      wan_vae::decode(model.vae, model.vae_config,
                      wan_vae::denormalise(latents, model.vae_config, wan_vae::Statistics::kFloat32));
  if (const auto decoded = tensors.find(name + "/decoded"); decoded != tensors.end()) {
    EXPECT_LE(max_abs(pixels.clamp(-1, 1), decoded->second[0]), tolerance.decoded) << where << " " << name;
  }
  if (const auto decoded = tensors.find(name + "/decoded_unclamped"); decoded != tensors.end()) {
    EXPECT_LE(max_abs(pixels, decoded->second[0]), tolerance.decoded) << where << " " << name;
  }
}

void check_diffusers(const fs::path& folder, const config::Factors& factors) {
  const c10::InferenceMode inference;
  const auto model = open(folder);
  const auto tensors = read_tensors(folder / "golden.safetensors");
  const Json description = read_json(folder / "case.json");
  for (const auto& c : description["cases"]) {
    const std::string name = c["name"];
    const int64_t given = c["num_latent_conditional_frames"];
    pipeline::Clip clip;
    clip.noise = tensors.at(name + "/noise")[0];
    clip.given = pipeline::encode_frames(model, cosmos::kDiffusers, given_frames(tensors, name, given),
                                         clip.noise.unsqueeze(0).sizes().vec());
    config::Request request;
    request.num_inference_steps = c["num_inference_steps"].get<int64_t>();
    clip.schedule = model.schedule(request);
    const double g = c["guidance_scale"];
    clip.guidance = g <= cosmos::kDiffusers.skip_guidance_up_to ? 0 : g;
    clip.conditional_time = c["conditional_frame_timestep"];
    check(model, cosmos::kDiffusers, tensors, c, clip, factors, tolerance_of(description), folder);
    if (const auto rows = tensors.find(name + "/prompt_embeds_rows_0_29_58"); rows != tensors.end()) {
      const auto text = pipeline::embed_prompts(model, request_of(c), {.positive = true, .negative = true});
      EXPECT_LE(max_abs(text.positive.slice(0, 0, std::nullopt, 29), rows->second[0]), 5e-5);
      EXPECT_LE(max_abs(text.negative.slice(0, 0, std::nullopt, 29),
                        tensors.at(name + "/negative_prompt_embeds_rows_0_29_58")[0]),
                5e-5);
    }
  }
}

void check_official(const fs::path& folder) {
  const c10::InferenceMode inference;
  auto model = open(folder / "../cosmos_predict");
  auto reference = cosmos::kOfficial;
  reference.bf16_latent_statistics = false;  // as this golden was made (see its case.json)
  const auto tensors = read_tensors(folder / "golden.safetensors");
  const Json description = read_json(folder / "case.json");
  for (const auto& c : description["cases"]) {
    const std::string name = c["name"];
    const int64_t given = c["conditioned_frames"];
    model.scheduler.karras = c["schedule"] == "karras";
    model.scheduler.shift = 5;
    config::Request request;
    request.reference = config::Reference::kOfficial;
    request.steps = c["num_steps"].get<int64_t>();
    pipeline::Clip clip;
    clip.noise = sample::numpy_noise({1, 16, model.vae_config.latent_frames(c["num_frames"]),
                                      c["height"].get<int64_t>() / 8, c["width"].get<int64_t>() / 8},
                                     c["seed"])[0];
    clip.given = pipeline::encode_frames(model, reference, given_frames(tensors, name, given),
                                         clip.noise.unsqueeze(0).sizes().vec());
    if (given > 0) {
      EXPECT_LE(max_abs_over_rms(clip.given, tensors.at(name + "/x_gt")[0]),
                tolerance_of(description).latents)
          << name;
    }
    clip.schedule = model.schedule(request);
    EXPECT_EQ(clip.schedule.evaluations(), c["evaluations"].get<int64_t>()) << name;
    clip.guidance = c["guidance"];
    clip.conditional_time =
        c["conditional_frame_timestep"].get<double>() < 0 ? -1.0f : reference.conditional_time;
    check(model, reference, tensors, c, clip, {}, tolerance_of(description), folder);
  }
}

TEST(PredictGolden, Diffusers) {
  int checked = 0;
  for (const auto& folder : golden_folders("pipelines"))
    if (folder.filename() == "cosmos_predict") check_diffusers(folder, {}), ++checked;
  EXPECT_GT(checked, 0);
}

TEST(PredictGolden, DiffusersOnFourRanks) {
  for (const auto& folder : golden_folders("pipelines"))
    if (folder.filename() == "cosmos_predict") check_diffusers(folder, {.cfg = 2, .ulysses = 2, .ring = 1});
}

TEST(PredictGolden, DiffusersOnRings) {
  for (const auto& folder : golden_folders("pipelines"))
    if (folder.filename() == "cosmos_predict")
      for (const auto& factors : {config::Factors{.cfg = 1, .ulysses = 1, .ring = 3},
                                  config::Factors{.cfg = 2, .ulysses = 2, .ring = 2}})
        check_diffusers(folder, factors);
}

TEST(PredictGolden, Official) {
  int checked = 0;
  for (const auto& folder : golden_folders("pipelines"))
    if (folder.filename() == "cosmos_predict_official") check_official(folder), ++checked;
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace orrery
