// The checkpoint that comes with orrery against the stock diffusers pipeline: every case of
// tests/golden/tiny_world, through predict() as the command line calls it, on one rank and on four.
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/media/resize.h"
#include "orrery/pipeline/pixels.h"
#include "orrery/pipeline/predict.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;

constexpr double kLatentsRelative = 1e-3;  // ‖difference‖ / ‖reference‖
constexpr double kFramesPsnr = 50;         // dB

double relative(const Tensor& got, const Tensor& expected) { return rms(got - expected) / rms(expected); }

double psnr(const media::Frames& got, const Tensor& expected) {
  EXPECT_EQ((Shape{got.count, got.height, got.width, 3}), expected.sizes().vec());
  const uint8_t* wanted = expected.const_data_ptr<uint8_t>();
  double sum = 0;
  for (size_t i = 0; i < got.rgb.size(); ++i) sum += std::pow(double{1} * got.rgb[i] - wanted[i], 2);
  return sum == 0 ? INFINITY : 10 * std::log10(255.0 * 255.0 * static_cast<double>(got.rgb.size()) / sum);
}

media::Frames given_frames(const std::map<std::string, Tensor>& tensors, int64_t latent) {
  if (latent == 0) return {};
  const auto& all = tensors.at("conditioning");
  const int64_t wanted = 4 * (latent - 1) + 1;
  const auto clip = all.narrow(0, all.size(0) - wanted, wanted).contiguous();
  const uint8_t* begin = clip.const_data_ptr<uint8_t>();
  return {clip.size(0), clip.size(1), clip.size(2), {begin, begin + clip.numel()}};
}

class TinyWorld : public ::testing::TestWithParam<config::Factors> {
 protected:
  static pipeline::PredictModel open() {
    config::Settings settings;
    settings.model = (fs::path(ORRERY_SOURCE_DIR) / "models/tiny-world").string();
    auto model = pipeline::open_predict_model(settings, at::kFloat);
    pipeline::load_weights(model, config::WeightStorage::kAuto);
    pipeline::load_encoder(model);
    return model;
  }
};

TEST_P(TinyWorld, MatchesTheReferenceVideos) {
  const c10::InferenceMode inference;
  const auto model = open();
  const parallel::Team team({}, GetParam(), 2);
  const fs::path folder = golden_root() / "tiny_world";
  const TempDir temp;
  const Json index = read_json(folder / "index.json");
  ASSERT_GT(index.size(), 0u);
  for (const auto& c : index) {
    const auto tensors = read_tensors(folder / (c["name"].get<std::string>() + ".safetensors"));
    const std::string noise = (temp.path() / "noise.safetensors").string();
    weights::write_safetensors(noise, {{"latents", tensors.at("latents")}});
    config::Request request;
    request.prompt = c["prompt"];
    request.init_latents = noise;
    const int64_t given = c["num_latent_conditional_frames"];
    request.num_latent_conditional_frames = given;
    request = config::complete(request, model.limits);
    EXPECT_EQ(*request.num_inference_steps, c["num_inference_steps"].get<int64_t>());
    EXPECT_EQ(*request.guidance, c["guidance_scale"].get<double>());
    const auto video =
        pipeline::predict(model, model.reference(request), team, request, given_frames(tensors, given), {});
    const double latents = relative(video.latents, tensors.at("final_latents")[0]);
    const double frames = psnr(video.frames, tensors.at("frames"));
    std::cout << c["name"] << ": latents " << latents << ", frames " << frames << " dB\n";
    EXPECT_LE(latents, kLatentsRelative) << c["name"];
    EXPECT_GE(frames, kFramesPsnr) << c["name"];
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, TinyWorld,
                         ::testing::Values(config::Factors{},
                                           config::Factors{.cfg = 2, .ulysses = 2, .ring = 1},
                                           config::Factors{.cfg = 1, .ulysses = 1, .ring = 3}));

}  // namespace
}  // namespace orrery
