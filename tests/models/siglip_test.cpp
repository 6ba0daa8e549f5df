// The SigLIP2 vision tower beyond its goldens: padding, weights in their file, hostile input, configurations.
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/models/load.h"
#include "orrery/models/siglip/model.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::siglip {
namespace {

using testing::expect_error;
using Json = nlohmann::json;

/// Three heads, two layers, patches of 2 × 2 pixels.
Config tiny_config(int64_t max_patches = 7) {
  return {.width = 12,
          .mlp_width = 10,
          .layers = 2,
          .heads = 3,
          .patch = 2,
          .table_side = 3,
          .max_patches = max_patches};
}

/// Every tensor of a published file of these sizes: both towers, the pooling head, the logits' scale.
weights::TensorMap checkpoint(const Config& config) {
  at::manual_seed(5);
  weights::TensorMap tensors;
  weights::Names names;
  Weights w;
  bind(names, w, config);
  for (const auto& [name, shape] : names.entries) tensors["vision_model." + name] = at::randn(shape);
  for (const char* name : {"text_model.head.weight", "vision_model.head.probe", "logit_scale", "logit_bias"})
    tensors[name] = at::randn({1});
  return tensors;
}

Weights tiny_weights(const weights::TensorMap& tensors, weights::Storage storage) {
  return load_weights(tensors, tiny_config(), at::kFloat, storage, "tiny");
}

/// A picture whose size is that of its grid of 2 × 3 patches.
media::Frames small_picture() {
  media::Frames picture{1, 4, 6, {}};
  for (int i = 0; i < 4 * 6 * 3; ++i) picture.rgb.push_back(static_cast<uint8_t>(i * 37 % 256));
  return picture;
}

/// Where every pixel of the picture comes to lie, and its value; no resize at this size.
TEST(SiglipImage, OrderOfPatchesAndFeatures) {
  Config c = tiny_config();
  c.mean = {0.5, 0.25, 0.75}, c.deviation = {0.5, 0.25, 1};
  const media::Frames picture = small_picture();
  const ImagePatches patches = patches_of(c, picture, 4, 6);
  EXPECT_EQ(patches.grid, (Grid{2, 3}));
  ASSERT_EQ(patches.values.sizes(), at::IntArrayRef({7, 12}));
  const auto* values = patches.values.const_data_ptr<float>();
  for (int64_t y = 0; y < 4; ++y)
    for (int64_t x = 0; x < 6; ++x)
      for (int64_t channel = 0; channel < 3; ++channel) {
        const float scaled =
            static_cast<float>(picture.rgb[static_cast<size_t>((y * 6 + x) * 3 + channel)]) * 255 / 256;
        const double level = static_cast<float>(c10::BFloat16(scaled));
        const auto i = static_cast<size_t>(channel);
        ASSERT_NEAR(values[(y / 2 * 3 + x / 2) * 12 + (y % 2 * 2 + x % 2) * 3 + channel],
                    (level / 255 - c.mean[i]) / c.deviation[i], 1e-6);
      }
  for (int64_t i = 6 * 12; i < 7 * 12; ++i) EXPECT_EQ(values[i], 0);
}

TEST(SiglipImage, RefusesWhatIsNoPicture) {
  const Config c = tiny_config();
  expect_error(ErrorKind::kRequest, "one frame, not 0", [&] { patches_of(c, {}, 4, 6); });
  expect_error(ErrorKind::kRequest, "one frame, not 2", [&] {
    patches_of(c, {2, 4, 6, std::vector<uint8_t>(2 * 4 * 6 * 3)}, 4, 6);
  });
  expect_error(ErrorKind::kRequest, "clip of size 1 × 0 × 6", [&] { patches_of(c, {1, 0, 6, {}}, 4, 6); });
  expect_error(ErrorKind::kRequest, "empty: 6 × 0", [&] { patches_of(c, small_picture(), 0, 6); });
  expect_error(ErrorKind::kRequest, "empty: -6 × 4", [&] { patches_of(c, small_picture(), 4, -6); });
  // Longer than the reference's smallest factor can shrink.
  const int64_t far = int64_t{1} << 60;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, far}, {far, far}})
    expect_error(ErrorKind::kRequest, "no grid of 7 patches",
                 [&] { patches_of(c, small_picture(), height, width); });
}

/// A valid row does not depend on how many rows of padding are behind it, to the bit.
TEST(SiglipModel, PaddingIsNotSeen) {
  const auto weights = tiny_weights(checkpoint(tiny_config()), weights::Storage::kWidened);
  const auto run = [&](int64_t max_patches) {
    const Config c = tiny_config(max_patches);
    return run_tower(weights, c, patches_of(c, small_picture(), 4, 6), at::kFloat);
  };
  const Tensor without = run(6), with = run(7);
  ASSERT_EQ(without.sizes(), at::IntArrayRef({6, 12}));
  ASSERT_EQ(with.sizes(), at::IntArrayRef({7, 12}));
  EXPECT_TRUE(with.narrow(0, 0, 6).equal(without));
  EXPECT_FALSE(with[6].equal(with[0]));
  EXPECT_GT(with[6].abs().max().item<double>(), 0.1);
}

/// bfloat16 weights that stay in their file, and the same ones widened.
TEST(SiglipModel, MappedWeightsGiveTheSameBits) {
  auto tensors = checkpoint(tiny_config());
  for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16);
  const auto run = [&](weights::Storage storage) {
    const Model model{tiny_config(), tiny_weights(tensors, storage), at::kFloat};
    return features(model, small_picture(), 40, 50);
  };
  EXPECT_EQ(tiny_weights(tensors, weights::Storage::kMapped).positions.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(run(weights::Storage::kMapped).equal(run(weights::Storage::kWidened)));
}

TEST(SiglipModel, BfloatIsNear) {
  const Config c = tiny_config();
  const auto weights = tiny_weights(checkpoint(c), weights::Storage::kWidened);
  const ImagePatches patches = patches_of(c, small_picture(), 40, 50);
  const Tensor exact = run_tower(weights, c, patches, at::kFloat);
  const Tensor coarse = run_tower(weights, c, patches, at::kBFloat16);
  EXPECT_EQ(coarse.scalar_type(), at::kBFloat16);
  const double off = (coarse.to(at::kFloat) - exact).pow(2).mean().sqrt().item<double>();
  EXPECT_LT(off, 0.05);  // of values near 1: a few roundings of 2⁻⁹ in each of two layers
  EXPECT_GT(off, 0);
}

TEST(SiglipModel, RefusesOtherPatches) {
  const Config c = tiny_config();
  const auto weights = tiny_weights(checkpoint(c), weights::Storage::kWidened);
  ImagePatches patches = patches_of(c, small_picture(), 4, 6);
  for (const Grid grid : {Grid{0, 3}, Grid{2, 4}}) {
    patches.grid = grid;
    expect_error(ErrorKind::kInternal, "expected [7, 12] and a grid within",
                 [&] { run_tower(weights, c, patches, at::kFloat); });
  }
  patches = patches_of(tiny_config(8), small_picture(), 4, 6);
  expect_error(ErrorKind::kInternal, "got [8, 12]", [&] { run_tower(weights, c, patches, at::kFloat); });
}

/// The text tower and the pooling head may be missing; nothing of the vision tower may.
TEST(SiglipModel, TellsWhichTensorsAreWrong) {
  const auto whole = checkpoint(tiny_config());
  const auto load = [](const weights::TensorMap& tensors) {
    tiny_weights(tensors, weights::Storage::kUnread);
  };
  auto bare = whole;
  std::erase_if(bare, [](const auto& one) {
    return !one.first.starts_with("vision_model.") || one.first.starts_with("vision_model.head.");
  });
  EXPECT_EQ(bare.size(), whole.size() - 4);
  EXPECT_NO_THROW(load(whole));
  EXPECT_NO_THROW(load(bare));
  for (const auto& [name, tensor] : bare) {
    auto changed = whole;
    changed.erase(name);
    expect_error(ErrorKind::kCheckpoint, name, [&] { load(changed); });
    changed[name] = tensor.unsqueeze(0);
    expect_error(ErrorKind::kCheckpoint, name, [&] { load(changed); });
  }
  for (const char* name : {"vision_model.encoder.layers.2.layer_norm1.bias", "visual_projection.weight"}) {
    auto changed = whole;
    changed[name] = at::randn({12});
    expect_error(ErrorKind::kCheckpoint, name, [&] { load(changed); });
  }
}

class SiglipConfig : public ::testing::Test {
 protected:
  Config read(const Json& config, const Json& processor = Json::object()) {
    std::ofstream(folder_ / "config.json") << config.dump();
    std::ofstream(folder_ / "preprocessor_config.json") << processor.dump();
    return read_config(folder_.path());
  }
  Config read_vision(const Json& vision) { return read({{"vision_config", vision}}); }

  testing::TempDir folder_;
  // google/siglip2-so400m-patch16-naflex, as far as it is read.
  Json published_ = {{"hidden_size", 1152},       {"intermediate_size", 4304},
                     {"num_attention_heads", 16}, {"num_hidden_layers", 27},
                     {"num_patches", 256},        {"model_type", "siglip2_vision_model"}};
};

TEST_F(SiglipConfig, PublishedAndDefaults) {
  const Config c = read({{"model_type", "siglip2"}, {"vision_config", published_}},
                        {{"max_num_patches", 256}, {"patch_size", 16}, {"do_convert_rgb", nullptr}});
  EXPECT_EQ(c.width, 1152);
  EXPECT_EQ(c.max_patches, 256);
  EXPECT_EQ(c.table_side, 16);
  EXPECT_EQ(c.patch_features(), 768);
  const auto size = size_of<Weights>(c);
  EXPECT_EQ(size.tensors(), 3 + 27 * 16 + 2);
  EXPECT_EQ(size.parameters(), 412649712);
  // What transformers leaves out.
  const Config base = read_vision(Json::object());
  EXPECT_EQ(base.width, 768);
  EXPECT_EQ(base.layers, 12);
  EXPECT_EQ(base.mean, (std::array<double, 3>{0.5, 0.5, 0.5}));
  EXPECT_EQ(read({{"vision_config", published_}}, {{"image_std", {0.5, 0.25, 1}}}).deviation,
            (std::array<double, 3>{0.5, 0.25, 1}));
}

TEST_F(SiglipConfig, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, Json> tower[] = {
      {"hidden_size", 0},   {"num_hidden_layers", "27"}, {"patch_size", 257},
      {"num_patches", 250}, {"layer_norm_eps", 0},       {"intermediate_size", int64_t{1} << 40},
      {"num_patches", -256}};
  for (const auto& [name, value] : tower) {
    Json json = published_;
    json[name] = value;
    expect_error(ErrorKind::kCheckpoint, name, [&] { read_vision(json); });
  }
  Json json = published_;
  json["num_attention_heads"] = 7;
  expect_error(ErrorKind::kCheckpoint, "width 1152 with 7 heads", [&] { read_vision(json); });
  expect_error(ErrorKind::kCheckpoint, "no vision_config", [&] { read(Json::object()); });
  const std::pair<const char*, Json> processor[] = {{"max_num_patches", 0}, {"max_num_patches", 5000},
                                                    {"image_mean", {0.5}},  {"image_std", {0.5, 0, 0.5}},
                                                    {"rescale_factor", -1}, {"patch_size", 14}};
  for (const auto& [name, value] : processor)
    expect_error(ErrorKind::kCheckpoint, name, [&] {
      read({{"vision_config", published_}}, {{name, value}});
    });
}

TEST_F(SiglipConfig, NamesWhatIsNotSupported) {
  for (const auto& [name, value] :
       {std::pair<const char*, Json>{"hidden_act", "gelu"}, {"num_channels", 1}}) {
    Json json = published_;
    json[name] = value;
    expect_error(ErrorKind::kUnsupported, name, [&] { read_vision(json); });
  }
  const std::pair<const char*, Json> processor[] = {
      {"do_resize", false}, {"do_rescale", false}, {"do_normalize", false}, {"resample", 3}};
  for (const auto& [name, value] : processor)
    expect_error(ErrorKind::kUnsupported, name, [&] {
      read({{"vision_config", published_}}, {{name, value}});
    });
}

TEST_F(SiglipConfig, NamesTheFileThatIsMissing) {
  const auto open = [&] { open_model(folder_.path(), at::kFloat, weights::Storage::kMapped); };
  expect_error(ErrorKind::kCheckpoint, "/config.json", open);
  std::ofstream(folder_ / "config.json") << Json{{"vision_config", published_}}.dump();
  expect_error(ErrorKind::kCheckpoint, "preprocessor_config.json", open);
  std::ofstream(folder_ / "preprocessor_config.json") << "[]";
  expect_error(ErrorKind::kCheckpoint, "expected a JSON object", open);
}

}  // namespace
}  // namespace orrery::siglip
