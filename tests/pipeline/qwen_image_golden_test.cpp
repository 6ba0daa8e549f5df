// Whole requests against diffusers' QwenImagePipeline and QwenImageEditPlusPipeline (tests/golden/pipelines).
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/pipeline/pixels.h"
#include "orrery/pipeline/qwen_image.h"
#include "orrery/pipeline/qwen_image_prompt.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;
using Tensors = std::map<std::string, Tensor>;

constexpr double kPixels = 5e-4;  // of a picture in [0, 1]

/// One request of a case: diffusers takes several prompts at once, each with its own noise.
struct Sample {
  config::Request request;
  pipeline::Given pictures;
  Tensor noise, after_step, latents;  // [n, S, 64], [steps, n, S, 64], [n, S, 64]
  Tensor embeds, image, image_uint8;  // where the case stores them
};

media::Frames picture_of(const Tensor& rgb) {
  const uint8_t* begin = rgb.const_data_ptr<uint8_t>();
  return {1, rgb.size(0), rgb.size(1), {begin, begin + rgb.numel()}};
}

std::vector<Sample> samples_of(const Json& c, const Tensors& tensors) {
  const std::string name = c["name"];
  const auto part = [&](const char* key, int64_t dim, int64_t begin, int64_t n) {
    const auto found = tensors.find(name + "/" + key);
    return found == tensors.end() ? Tensor() : found->second.narrow(dim, begin, n).contiguous();
  };
  config::Request r;
  r.negative_prompt = c["negative_prompt"];
  // diffusers cuts a size down to a multiple of 16; we refuse others.
  r.height = c["height"].get<int64_t>() / 16 * 16, r.width = c["width"].get<int64_t>() / 16 * 16;
  r.num_inference_steps = c["num_inference_steps"].get<int64_t>();
  r.guidance = c["true_cfg_scale"].get<double>();
  const int64_t n = c.value("num_images_per_prompt", int64_t{1});
  r.num_images = n;
  pipeline::Given pictures;
  for (int i = 0; tensors.count(name + "/image" + std::to_string(i)); ++i) {
    pictures.push_back(picture_of(tensors.at(name + "/image" + std::to_string(i))));
    r.images.push_back("picture " + std::to_string(i));
  }
  const auto prompts = c.contains("prompts") ? c["prompts"].get<std::vector<std::string>>()
                                             : std::vector{c["prompt"].get<std::string>()};
  std::vector<Sample> samples;
  for (int64_t b = 0; b < std::ssize(prompts); ++b) {
    r.prompt = prompts[static_cast<size_t>(b)];
    samples.push_back({r, pictures, part("noise", 0, b * n, n), part("latents_after_step", 1, b * n, n),
                       part("latents", 0, b * n, n), part("prompt_embeds", 0, b, 1),
                       part("image", 0, b * n, n), part("image_uint8", 0, b * n, n)});
  }
  return samples;
}

pipeline::QwenImageModel open(const fs::path& folder, const Json& description) {
  config::Settings settings;
  settings.model = folder;
  auto model = pipeline::open_qwen_image_model(settings, at::kFloat);
  const Json& first = description["cases"][0];
  model.vae_area = first.value("vae_image_area", model.vae_area);
  model.vision_area = first.value("condition_image_area", model.vision_area);
  pipeline::load_weights(model, config::WeightStorage::kAuto);
  return model;
}

void check(const pipeline::QwenImageModel& model, const Sample& s, const config::Factors& factors,
           double tolerance) {
  const TempDir temp;
  auto request = config::complete(s.request, model.limits);
  request.init_latents = temp / "noise.safetensors";
  weights::write_safetensors(*request.init_latents, {{"latents", s.noise}});
  config::validate(request, model.limits, {});
  int64_t steps = 0, pictures = 0;
  pipeline::Hooks hooks;
  hooks.observe = [&](const std::string& what, const Tensor& x) {
    const int64_t count = s.after_step.size(0);
    if (what.starts_with("step ")) {
      EXPECT_LE(max_abs_over_rms(x, s.after_step[steps % count][steps / count]), tolerance) << what;
      ++steps;
    } else if (what == "text" && s.embeds.defined()) {
      EXPECT_LE(max_abs(x, s.embeds[0].narrow(0, 0, x.size(0))), 5e-5);
    } else if (what.starts_with("pixels ") && s.image.defined()) {
      EXPECT_LE(max_abs((x.select(1, 0) / 2 + 0.5).clamp(0, 1), s.image[pictures]), kPixels);
      ++pictures;
    }
  };
  const parallel::Team team({}, factors, 2);
  const auto media = pipeline::make_pictures(model, team, request, s.pictures, hooks);
  EXPECT_EQ(steps, s.after_step.size(0) * s.latents.size(0));
  EXPECT_LE(max_abs_over_rms(media.latents, s.latents), tolerance);
  if (!s.image_uint8.defined()) return;
  const auto& f = media.frames;
  const auto rgb =
      at::from_blob(const_cast<uint8_t*>(f.rgb.data()), {f.count, f.height, f.width, 3}, at::kByte);
  EXPECT_LE(max_abs(rgb.permute({0, 3, 1, 2}), s.image_uint8), 1);
}

int check_all(const std::string& which, const config::Factors& factors = {}) {
  const c10::InferenceMode inference;
  int checked = 0;
  for (const auto& folder : golden_folders("pipelines")) {
    if (folder.filename() != which) continue;
    const auto tensors = read_tensors(folder / "golden.safetensors");
    const Json description = read_json(folder / "case.json");
    const auto model = open(folder, description);
    for (const auto& c : description["cases"]) {
      // Made with positions of picture tokens that transformers 5.24 got wrong; case "two" has the right
      // ones.
      if (c["name"] == "two_as_installed") continue;
      for (const Sample& s : samples_of(c, tensors)) {
        SCOPED_TRACE(c["name"].get<std::string>() + " on " + to_string(factors));
        check(model, s, factors, description["tolerance"]["float32"]["latents max_abs_over_rms"]);
        ++checked;
      }
    }
  }
  return checked;
}

class QwenImagePipeline : public ::testing::TestWithParam<config::Factors> {};

TEST_P(QwenImagePipeline, TextToImage) { EXPECT_GT(check_all("qwen_image", GetParam()), 0); }

TEST_P(QwenImagePipeline, EditsPictures) { EXPECT_GT(check_all("qwen_image_edit_plus", GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Plans, QwenImagePipeline,
                         ::testing::Values(config::Factors{}, config::Factors{.cfg = 2, .ulysses = 3},
                                           config::Factors{.ring = 2},
                                           config::Factors{.cfg = 2, .ulysses = 2, .ring = 2}),
                         [](const auto& p) {
                           std::string name = to_string(p.param);
                           std::erase(name, ',');
                           return name;
                         });

TEST(QwenImageSizes, GivenPicturesKeepTheirShape) {
  const auto size = [](int64_t width, int64_t height, int64_t area) {
    return pipeline::size_of_area({1, height, width, {}}, area);
  };
  constexpr int64_t kVae = 1024 * 1024, kVision = 384 * 384;
  EXPECT_EQ(size(1920, 1080, kVae), (qwen_vl::Size{768, 1376}));
  EXPECT_EQ(size(1920, 1080, kVision), (qwen_vl::Size{288, 512}));
  EXPECT_EQ(size(800, 600, kVae), (qwen_vl::Size{896, 1184}));
  EXPECT_EQ(size(800, 600, kVision), (qwen_vl::Size{320, 448}));
  EXPECT_EQ(size(7, 7, kVae), (qwen_vl::Size{1024, 1024}));
  EXPECT_EQ(size(7, 7, kVision), (qwen_vl::Size{384, 384}));
}

TEST(QwenImageGolden, GivenPicturesAsTheVaeTakesThem) {
  int checked = 0;
  for (const auto& folder : golden_folders("pipelines")) {
    if (folder.filename() != "qwen_image_edit_plus") continue;
    const auto tensors = read_tensors(folder / "golden.safetensors");
    const Json description = read_json(folder / "case.json");
    for (const auto& c : description["cases"])
      for (int i = 0;; ++i) {
        const std::string name = c["name"].get<std::string>(), number = std::to_string(i);
        const auto wanted = tensors.find(name + "/vae_input" + number);
        if (wanted == tensors.end()) break;
        const auto got =
            pipeline::resized_to_area(picture_of(tensors.at(name + "/image" + number)), c["vae_image_area"]);
        const auto rgb =
            at::from_blob(const_cast<uint8_t*>(got.rgb.data()), {got.height, got.width, 3}, at::kByte);
        EXPECT_EQ(max_abs(rgb.permute({2, 0, 1}), wanted->second), 0) << name << " " << i;
        ++checked;
      }
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace orrery
