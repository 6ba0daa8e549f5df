// The Qwen-Image transformer beyond its goldens: the specification's own model, larger pictures on many
// ranks, configurations.
#include "orrery/models/qwen_image/model.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/parallel/team.h"
#include "orrery/weights/visitors.h"
#include "tests/parallel/on_ranks.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;
using qwen_image::PictureSize;
using qwen_image::TransformerConfig;

/// The values of spec qwen-image §11.2: base + amplitude · u, u from a hash of the key and the place.
Tensor hashed(const std::string& key, const Shape& shape, double base, double amplitude) {
  uint32_t seed = 0x811c9dc5;
  for (const char c : key) seed = (seed ^ static_cast<uint8_t>(c)) * 0x01000193;
  Tensor t = at::empty(shape, at::kFloat);
  for (int64_t i = 0; i < t.numel(); ++i) {
    uint32_t x = seed + static_cast<uint32_t>(i) * 0x9e3779b9;
    x = (x ^ x >> 16) * 0x85ebca6b;
    x = (x ^ x >> 13) * 0xc2b2ae35;
    x ^= x >> 16;
    t.mutable_data_ptr<float>()[i] = static_cast<float>(base + amplitude * (x / 2147483648.0 - 1));
  }
  return t;
}

class HashedWeights final : public nn::Visitor<HashedWeights> {
 public:
  void tensor(const std::string& name, Tensor& t, const Shape& shape) {
    if (shape.size() > 1)
      t = hashed(name, shape, 0, std::sqrt(3.0 / static_cast<double>(shape[1])));
    else
      t = hashed(name, shape, name.ends_with(".bias") ? 0 : 1, 0.1);
  }
};

qwen_image::Transformer hashed_model(const TransformerConfig& config) {
  qwen_image::TransformerWeights weights;
  HashedWeights visitor;
  bind(visitor, weights, config);
  return {config, std::move(weights)};
}

TransformerConfig tiny(bool zero_cond_t = false) {
  TransformerConfig c;
  c.latent_channels = 4, c.heads = 4, c.head_dim = 16, c.layers = 2, c.text_width = 16;
  c.rope_axes = {8, 4, 4}, c.zero_cond_t = zero_cond_t;
  return c;
}

Tensor velocity(const qwen_image::Transformer& model, const std::vector<PictureSize>& pictures,
                const Tensor& packed, const Tensor& embeds, float time, const config::Factors& factors = {}) {
  const auto grid = model.grid(pictures);
  const auto prepared = model.prepare(grid, embeds);
  const auto step = model.steps({time})[0];
  const auto tokens = model.tokens(grid, packed);
  const parallel::Team team({}, factors, 2);
  return team.run([&](const parallel::Context& ctx) {
    parallel::BlockPolicy policy;
    return parallel::run(ctx, model, prepared, step, tokens, policy);
  });
}

TEST(QwenImage, TimesDoNotDependOnEachOther) {
  const std::vector<float> times = {1, 0.9f, 0.4f, 0.02f, 0.77f};
  for (const bool zero_cond_t : {false, true}) {
    const auto model = hashed_model(tiny(zero_cond_t));
    const auto together = model.steps(times);
    ASSERT_EQ(together.size(), times.size());
    for (size_t i = 0; i < times.size(); ++i) {
      const auto alone = model.steps({times[i]})[0];
      EXPECT_EQ(together[i].blocks[1].image.mlp.gate.size(0), zero_cond_t ? 2 : 1);
      EXPECT_TRUE(at::equal(together[i].final.scale, alone.final.scale));
      for (size_t b = 0; b < alone.blocks.size(); ++b)
        for (auto side : {&qwen_image::Step::BlockRows::text, &qwen_image::Step::BlockRows::image}) {
          EXPECT_TRUE(at::equal((together[i].blocks[b].*side).attention.shift,
                                (alone.blocks[b].*side).attention.shift));
          EXPECT_TRUE(at::equal((together[i].blocks[b].*side).mlp.gate, (alone.blocks[b].*side).mlp.gate));
        }
    }
  }
}

// The printed numbers of spec qwen-image §11.2.
TEST(QwenImage, OfTheSpecification) {
  struct Row {
    std::vector<PictureSize> pictures;
    float time;
    int64_t text;
    bool zero_cond_t;
    double sum, norm;
    std::array<double, 4> first, last;
  };
  const std::array<double, 4> first_d = {-0.260929, 0.571491, 0.181574, 0.143016};
  const Row rows[] = {
      {{{4, 4}},
       1.0f,
       8,
       false,
       -11.222474,
       17.316002,
       {-0.189735, 1.020091, -0.358245, -0.142517},
       {-0.376594, 4.252272, 0.885221, -0.610714}},
      {{{4, 4}},
       0.5f,
       8,
       false,
       -2.414927,
       17.157099,
       {-0.327552, 0.511254, 0.192769, 0.167976},
       {-0.648495, 3.845438, 0.760455, -0.670945}},
      {{{4, 4}},
       0.5f,
       5,
       false,
       -2.731593,
       17.139598,
       {-0.282847, 0.512622, 0.219270, 0.147800},
       {-0.668740, 3.830612, 0.797170, -0.745159}},
      {{{3, 5}},
       0.5f,
       8,
       false,
       -6.157828,
       16.361335,
       {-0.345262, 0.567253, 0.163229, 0.162061},
       {0.232959, 2.036014, -0.030008, 0.255021}},
      {{{4, 4}, {2, 4}},
       0.5f,
       8,
       false,
       19.952525,
       20.664002,
       first_d,
       {0.397141, 0.879266, -0.090964, -2.183773}},
      {{{4, 4}, {2, 4}},
       0.5f,
       8,
       true,
       14.117994,
       20.696513,
       {-0.274021, 0.523518, 0.113021, 0.157923},
       {0.518582, 0.977637, -0.198993, -2.048166}},
  };
  const double amplitude = std::sqrt(3.0);
  const Tensor embeds = hashed("input.encoder_hidden_states", {8, 16}, 0, amplitude);
  for (const auto& row : rows) {
    const auto model = hashed_model(tiny(row.zero_cond_t));
    const int64_t tokens = model.grid(row.pictures).tokens();
    const Tensor packed = hashed("input.hidden_states", {tokens, 16}, 0, amplitude);
    const Tensor v =
        velocity(model, row.pictures, packed, embeds.narrow(0, 0, row.text), row.time).to(at::kDouble);
    EXPECT_NEAR(v.sum().item<double>(), row.sum, 5e-4);
    EXPECT_NEAR(v.norm().item<double>(), row.norm, 5e-4);
    const Tensor flat = v.flatten();
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(flat[i].item<double>(), row.first[static_cast<size_t>(i)], 5e-5);
      EXPECT_NEAR(flat[flat.size(0) - 4 + i].item<double>(), row.last[static_cast<size_t>(i)], 5e-5);
    }
  }
}

// 1328 × 1328 pixels are 83 × 83 tokens, which nothing below 83 divides, as nothing divides 17 and 3.
TEST(QwenImage, LargePictureOnManyRanks) {
  auto config = tiny();
  config.heads = 3, config.layers = 1;
  const auto model = hashed_model(config);
  at::manual_seed(5);
  const std::vector<PictureSize> pictures = {{83, 83}};
  const Tensor packed = at::randn({83 * 83, 16}), embeds = at::randn({17, 16});
  const Tensor one = velocity(model, pictures, packed, embeds, 0.7f);
  for (const int64_t ranks : {2, 3, 4, 5})
    EXPECT_TRUE(at::equal(
        velocity(model, pictures, packed, embeds, 0.7f, {.cfg = 1, .ulysses = ranks, .ring = 1}), one))
        << ranks;
  EXPECT_LE(
      relative(velocity(model, pictures, packed, embeds, 0.7f, {.cfg = 1, .ulysses = 2, .ring = 2}), one),
      1e-5);
}

// One token of each kind on more ranks than tokens.
TEST(QwenImage, FewerTokensThanRanks) {
  const auto model = hashed_model(tiny(true));
  at::manual_seed(6);
  const std::vector<PictureSize> pictures = {{1, 1}, {1, 1}};
  const Tensor packed = at::randn({2, 16}), embeds = at::randn({1, 16});
  const Tensor one = velocity(model, pictures, packed, embeds, 0.3f);
  EXPECT_TRUE(
      at::equal(velocity(model, pictures, packed, embeds, 0.3f, {.cfg = 1, .ulysses = 5, .ring = 1}), one));
  EXPECT_LE(
      relative(velocity(model, pictures, packed, embeds, 0.3f, {.cfg = 1, .ulysses = 2, .ring = 4}), one),
      1e-5);
}

TEST(QwenImage, RefusesTextOfAnotherWidth) {
  const auto model = hashed_model(tiny());
  const auto grid = model.grid({{2, 2}});
  expect_error(ErrorKind::kRequest, "takes [tokens, 16]", [&] { model.prepare(grid, at::randn({3, 17})); });
  expect_error(ErrorKind::kRequest, "takes [tokens, 16]", [&] { model.prepare(grid, at::randn({0, 16})); });
}

class QwenImageConfig : public ::testing::Test {
 protected:
  TransformerConfig read(const nlohmann::json& json) {
    std::ofstream(folder_ / "config.json") << json.dump();
    return qwen_image::read_transformer_config(folder_ / "config.json");
  }
  TempDir folder_;
};

TEST_F(QwenImageConfig, IsThePublishedModelUnlessSaidOtherwise) {
  const auto published =
      read({{"_class_name", "QwenImageTransformer2DModel"}, {"pooled_projection_dim", 768}});
  qwen_image::TransformerWeights weights;
  weights::Sizer sizer;
  bind(sizer, weights, published);
  EXPECT_EQ(sizer.parameters(), 20430401088);
  EXPECT_EQ(sizer.tensors(), 1933);
  EXPECT_FALSE(published.zero_cond_t);
  EXPECT_TRUE(read({{"zero_cond_t", true}}).zero_cond_t);
}

TEST_F(QwenImageConfig, NamesWhatIsWrongOrNotSupported) {
  for (const char* variant : {"guidance_embeds", "use_additional_t_cond", "use_layer3d_rope"})
    expect_error(ErrorKind::kUnsupported, variant, [&] { read({{variant, true}}); });
  expect_error(ErrorKind::kUnsupported, "in_channels", [&] { read({{"in_channels", 63}}); });
  expect_error(ErrorKind::kCheckpoint, "axes_dims_rope", [&] { read({{"attention_head_dim", 64}}); });
  expect_error(ErrorKind::kCheckpoint, "even", [&] { read({{"axes_dims_rope", {15, 57, 56}}}); });
  expect_error(ErrorKind::kCheckpoint, "num_layers", [&] { read({{"num_layers", 0}}); });
  expect_error(ErrorKind::kCheckpoint, "patch_size", [&] { read({{"patch_size", 1 << 20}}); });
}

}  // namespace
}  // namespace orrery
