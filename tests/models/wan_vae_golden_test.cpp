// The Wan VAE against AutoencoderKLWan of diffusers (tests/golden/wan_vae): every case of every folder.
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/ops/cpu/isa.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "orrery/weights/visitors.h"
#include "tests/support/every_weight.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;
using weights::TensorMap;

wan_vae::Weights load(const TensorMap& tensors, const wan_vae::Config& config, at::ScalarType dtype) {
  wan_vae::Weights weights;
  weights::Loader loader(tensors, dtype, weights::Storage::kWidened, "golden");
  bind(loader, weights, config);
  loader.finish();
  prepare_encoder(weights, dtype);
  prepare_decoder(weights, dtype);
  return weights;
}

struct Golden {
  explicit Golden(const fs::path& folder)
      : config(wan_vae::read_config(folder / "vae/config.json")),
        tensors(read_tensors(folder / "golden.safetensors")),
        description(read_json(folder / "case.json")),
        weights(weights::open_weights(folder / "vae")) {}

  /// A tensor of the case, without its batch dimension.
  Tensor get(const Json& c, const std::string& name) const {
    return tensors.at(c["name"].get<std::string>() + "/" + name)[0];
  }
  bool has(const Json& c, const std::string& name) const {
    return tensors.contains(c["name"].get<std::string>() + "/" + name);
  }

  wan_vae::Config config;
  TensorMap tensors;
  Json description;
  TensorMap weights;
};

TEST(WanVaeGolden, Float32) {
  const c10::InferenceMode guard;
  const auto folders = golden_folders("wan_vae");
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders) {
    const Golden golden(folder);
    const auto weights = load(golden.weights, golden.config, at::kFloat);
    const double tolerance = golden.description["tolerance"]["float32"]["max_abs"];
    int checked = 0;
    for (const auto& c : golden.description["cases"]) {
      if (!golden.has(c, "decode.sample_unclamped")) continue;
      for (const int64_t chunk : {1, 3}) {
        const Tensor mean = encode(weights, golden.config, golden.get(c, "pixels"), {.chunk = chunk});
        EXPECT_LE(max_abs(mean, golden.get(c, "encode.mean")), tolerance) << folder << c["name"];
        EXPECT_LE(max_abs(normalise(mean, golden.config, wan_vae::Statistics::kFloat32),
                          golden.get(c, "encode.latents")),
                  tolerance)
            << folder << c["name"];
        const Tensor z =
            denormalise(golden.get(c, "decode_latents"), golden.config, wan_vae::Statistics::kFloat32);
        EXPECT_LE(max_abs(decode(weights, golden.config, z, {.chunk = chunk}),
                          golden.get(c, "decode.sample_unclamped")),
                  tolerance)
            << folder << c["name"];
      }
      ++checked;
    }
    EXPECT_GT(checked, 0) << folder;
  }
}

TEST(WanVaeGolden, Tiles) {
  const c10::InferenceMode guard;
  int checked = 0;
  for (const auto& folder : golden_folders("wan_vae")) {
    const Golden golden(folder);
    const auto weights = load(golden.weights, golden.config, at::kFloat);
    const double tolerance = golden.description["tolerance"]["float32"]["max_abs"];
    for (const auto& c : golden.description["cases"]) {
      if (!c.contains("tiling")) continue;
      const Json& t = c["tiling"];
      const wan_vae::Options tiled{
          .tiling = wan_vae::Tiling{t["tile_sample_min_height"], t["tile_sample_min_width"],
                                    t["tile_sample_stride_height"], t["tile_sample_stride_width"]}};
      const Tensor pixels = golden.get(c, "pixels");
      const Tensor z =
          denormalise(golden.get(c, "decode_latents"), golden.config, wan_vae::Statistics::kFloat32);
      EXPECT_LE(max_abs(encode(weights, golden.config, pixels), golden.get(c, "encode.mean_untiled")),
                tolerance);
      EXPECT_LE(max_abs(encode(weights, golden.config, pixels, tiled), golden.get(c, "encode.mean_tiled")),
                tolerance);
      // diffusers clamps what it has blended.
      EXPECT_LE(max_abs(decode(weights, golden.config, z, tiled).clamp(-1, 1), golden.get(c, "decode.tiled")),
                tolerance);
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

TEST(WanVaeGolden, Bfloat16) {
  if (!ops::cpu::has_fast_bfloat16()) GTEST_SKIP() << "this CPU computes bfloat16 in software";
  const c10::InferenceMode guard;
  int checked = 0;
  for (const auto& folder : golden_folders("wan_vae")) {
    const Golden golden(folder);
    const auto weights = load(golden.weights, golden.config, at::kBFloat16);
    for (const auto& c : golden.description["cases"]) {
      if (!c.contains("bf16_error")) continue;
      const auto allowed = [&](const char* name) {
        return 2 * c["bf16_error"][name]["relative_to_rms"].get<double>();
      };
      const double encoded = max_abs_over_rms(encode(weights, golden.config, golden.get(c, "pixels")),
                                              golden.get(c, "encode.mean"));
      // diffusers clamps what it returns.
      const Tensor frames = decode(weights, golden.config, golden.get(c, "decode_z")).clamp(-1, 1);
      const double decoded = max_abs_over_rms(frames, golden.get(c, "decode.sample"));
      EXPECT_LE(encoded, allowed("mean")) << folder;
      EXPECT_LE(decoded, allowed("sample")) << folder;
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

TEST(WanVaeGolden, EveryWeightMatters) {
  const c10::InferenceMode guard;
  const auto folders = golden_folders("wan_vae");
  ASSERT_FALSE(folders.empty());
  const Golden golden(folders.front());
  const auto c = *std::find_if(golden.description["cases"].begin(), golden.description["cases"].end(),
                               [&](const Json& one) { return golden.get(one, "pixels").size(1) >= 5; });
  const Tensor pixels = golden.get(c, "pixels"), latents = golden.get(c, "decode_latents");
  const auto run = [&](const TensorMap& tensors, bool encoder) {
    const auto weights = load(tensors, golden.config, at::kFloat);
    return encoder ? encode(weights, golden.config, pixels) : decode(weights, golden.config, latents);
  };
  const Tensor mean = run(golden.weights, true), frames = run(golden.weights, false);
  // What the other tests tolerate.
  const double least = golden.description["tolerance"]["float32"]["max_abs"];
  for_each_disturbed(golden.weights, [&](const std::string& name, const TensorMap& changed) {
    const bool encoder = name.starts_with("encoder.") || name.starts_with("quant_conv");
    EXPECT_GT(max_abs(run(changed, encoder), encoder ? mean : frames), least) << name;
  });
}

/// 0.9 sin(0.013 j) and the like, j from 1, computed in float64.
Tensor wave(double base, double scale, double frequency, double phase, at::IntArrayRef shape) {
  const int64_t count = c10::multiply_integers(shape);
  const Tensor j = at::arange(1, count + 1, at::kDouble);
  return (base + scale * at::sin(frequency * j + phase)).to(at::kFloat).view(shape);
}

// Spec cosmos-predict2.5 §11.2: weights by formula in the order of the official names, and the numbers that
// the official code gives. The decode is badly conditioned (float32 is up to 1.2e-3 away from float64), hence
// 2e-3.
TEST(WanVaeGolden, ToyOfTheSpecification) {
  const c10::InferenceMode guard;
  wan_vae::Config config;
  config.base_dim = 8, config.z_dim = 4;
  wan_vae::Weights weights;
  weights::Names names;
  bind(names, weights, config);
  const std::map<std::string, Shape> shapes(names.entries.begin(), names.entries.end());

  // The published file's names, each with its place in ASCII order, brought to diffusers' spelling.
  TensorMap order;
  for (const auto& [name, tensor] :
       weights::open_weights(fs::path(ORRERY_SOURCE_DIR) / "tests/golden/wan_vae/tokenizer.pth"))
    order[name] = at::zeros({}) + static_cast<double>(order.size() + 1);
  ASSERT_EQ(order.size(), 194u);
  TensorMap tensors;
  for (const auto& [name, place] : weights::wan_vae_names(order)) {
    const Shape& shape = shapes.at(name);
    const bool norm = name.ends_with("gamma");
    tensors[name] = wave(norm ? 1 : 0,
                         norm               ? 0.1
                         : shape.size() > 3 ? 0.15
                                            : 0.1,
                         0.37, 0.91 * place.item<double>(), shape);
  }
  const auto toy = load(tensors, config, at::kFloat);

  const Tensor mean = encode(toy, config, wave(0, 0.9, 0.013, 0, {3, 9, 16, 16})).flatten();
  const double expected_mean[] = {0.093855, 0.093005, 0.100144, 0.107167, -0.032152, -0.069992};
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(mean[i].item<double>(), expected_mean[i], 2e-5);
  EXPECT_NEAR(mean.sum().item<double>(), 4.547863, 2e-4);

  const Tensor frames = decode(toy, config, wave(0, 0.7, 0.23, 0, {4, 3, 2, 2})).flatten();
  const double expected_frames[] = {0.208279, 0.799923, 1.321687, 1.653300, 1.881100, 1.961780};
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(frames[i].item<double>(), expected_frames[i], 2e-3);
  EXPECT_NEAR(frames.abs().max().item<double>(), 9.135177, 2e-3);
  EXPECT_NEAR(frames.sum().item<double>(), 561.914995, 0.2);
}

}  // namespace
}  // namespace orrery
