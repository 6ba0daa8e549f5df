#include "orrery/models/wan_vae/wan_vae.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "orrery/base/text.h"
#include "orrery/models/wan_vae/chunks.h"
#include "orrery/weights/visitors.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"
#include "tests/support/threads.h"
#include "tests/support/wan_vae.h"

namespace orrery {
namespace {

using namespace testing;

/// Wide enough for the Winograd form (16 channels and more), small enough for a second.
wan_vae::Config small() {
  wan_vae::Config c;
  c.base_dim = 16, c.z_dim = 4, c.latents_mean = {0, 0, 0, 0}, c.latents_std = {1, 1, 1, 1};
  return c;
}

class WanVae : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const c10::InferenceMode guard;
    weights_ = new wan_vae::Weights(random_vae(small()));
  }
  static void TearDownTestSuite() { delete weights_; }

  static inline wan_vae::Weights* weights_ = nullptr;
  const wan_vae::Config config_ = small();
  const c10::InferenceMode guard_;
};

TEST_F(WanVae, PublishedModelHasItsTensorsAndParameters) {
  wan_vae::Weights weights;
  weights::Sizer sizer;
  bind(sizer, weights, wan_vae::Config{});
  EXPECT_EQ(sizer.tensors(), 194);
  EXPECT_EQ(sizer.parameters(), 126'892'531);
}

TEST_F(WanVae, ChunksDoNotShowInTheResult) {
  const Tensor pixels = at::rand({3, 17, 24, 16}) * 2 - 1, latents = at::randn({4, 5, 3, 2});
  const Tensor mean = encode(*weights_, config_, pixels, {.chunk = 1});
  const Tensor frames = decode(*weights_, config_, latents, {.chunk = 1});
  EXPECT_EQ(mean.sizes(), (Shape{4, 5, 3, 2}));
  EXPECT_EQ(frames.sizes(), (Shape{3, 17, 24, 16}));
  for (const int64_t chunk : {0, 2, 3, 4}) {
    EXPECT_LE(max_abs(encode(*weights_, config_, pixels, {.chunk = chunk}), mean), 2e-5) << chunk;
    EXPECT_LE(max_abs(decode(*weights_, config_, latents, {.chunk = chunk}), frames), 2e-5) << chunk;
  }
}

TEST_F(WanVae, PrefixOfTheLatentsGivesPrefixOfTheFrames) {
  const Tensor latents = at::randn({4, 4, 2, 3}), whole = decode(*weights_, config_, latents, {.chunk = 1});
  for (int64_t k = 1; k < 4; ++k)
    EXPECT_TRUE(at::equal(decode(*weights_, config_, latents.narrow(1, 0, k), {.chunk = 1}),
                          whole.narrow(1, 0, config_.frames(k))));
}

TEST_F(WanVae, StreamsFramesInOrder) {
  const Tensor latents = at::randn({4, 4, 2, 2});
  std::vector<Tensor> parts;
  decode(*weights_, config_, latents, [&](const Tensor& frames) { parts.push_back(frames); }, {.chunk = 2});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].size(1), 1);
  EXPECT_EQ(parts[1].size(1), 8);
  EXPECT_EQ(parts[2].size(1), 4);
  EXPECT_TRUE(at::equal(at::cat(parts, 1), decode(*weights_, config_, latents, {.chunk = 2})));
  EXPECT_THROW(
      decode(*weights_, config_, latents, [](const Tensor&) { throw std::runtime_error("cancelled"); }),
      std::runtime_error);
}

TEST_F(WanVae, Float32UsesWinogradExceptAtTheLatentsResolution) {
  using Form = wan_vae::Conv::Form;
  EXPECT_EQ(weights_->encoder.levels.front().resnets[0].conv1.form, Form::kWinograd);
  EXPECT_EQ(weights_->encoder.levels.back().resnets[0].conv1.form, Form::kDirect);
  EXPECT_EQ(weights_->encoder.mid.resnets[0].conv1.form, Form::kDirect);
  EXPECT_EQ(weights_->decoder.levels.front().resnets[0].conv1.form, Form::kDirect);
  EXPECT_EQ(weights_->decoder.levels.back().resnets[0].conv2.form, Form::kWinograd);
  EXPECT_EQ(random_vae(config_, at::kBFloat16).decoder.levels.back().resnets[0].conv2.form, Form::kDirect);
}

TEST_F(WanVae, ThreadsDoNotShowInTheResult) {
  const Tensor pixels = at::rand({3, 5, 48, 56}) * 2 - 1, latents = at::randn({4, 2, 6, 7});
  const Tensor mean = encode(*weights_, config_, pixels), frames = decode(*weights_, config_, latents);
  for (const int count : {1, 3, 4}) {
    const Threads threads(count);
    EXPECT_TRUE(at::equal(encode(*weights_, config_, pixels), mean)) << count;
    EXPECT_TRUE(at::equal(decode(*weights_, config_, latents), frames)) << count;
  }
}

TEST_F(WanVae, UnpreparedWeightsAreRefused) {
  wan_vae::Weights weights;
  RandomVae random;
  bind(random, weights, config_);
  weights.post_quant.weight = weights.post_quant.weight.flatten(1);
  expect_error(ErrorKind::kInternal, "prepared", [&] { decode(weights, config_, at::randn({4, 1, 2, 2})); });
  expect_error(ErrorKind::kInternal, "prepared", [&] {
    encode(weights, config_, at::zeros({3, 1, 16, 16}));
  });
}

TEST_F(WanVae, EachHalfIsPreparedByItselfAndOnce) {
  wan_vae::Weights weights;
  RandomVae random;
  bind(random, weights, config_);
  prepare_decoder(weights, at::kFloat);
  EXPECT_EQ(weights.encoder.conv_in.form, wan_vae::Conv::Form::kLoaded);
  const Tensor latents = at::randn({4, 1, 2, 2}), frames = decode(weights, config_, latents);
  prepare_encoder(weights, at::kFloat);
  prepare_decoder(weights, at::kFloat);
  EXPECT_TRUE(at::equal(decode(weights, config_, latents), frames));
  EXPECT_EQ(encode(weights, config_, frames).sizes(), latents.sizes());
}

TEST_F(WanVae, DefaultChunksFitMemory) {
  const auto sizes = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> all;
    for (const auto& chunk : wan_vae::chunks(wan_vae::Config{}, {}, 24, rows, columns, at::kFloat))
      all.push_back(chunk.end - chunk.begin);
    return all;
  };
  EXPECT_EQ(sizes(704, 1280), std::vector<int64_t>(24, 1));
  EXPECT_EQ(sizes(64, 64), (std::vector<int64_t>{1, 8, 8, 7}));
}

TEST_F(WanVae, TilesStreamTheirFramesAndLeaveSmallPicturesAlone) {
  const Tensor latents = at::randn({4, 3, 5, 4});
  const Tensor whole = decode(*weights_, config_, latents);
  EXPECT_TRUE(
      at::equal(decode(*weights_, config_, latents, {.tiling = wan_vae::Tiling{40, 32, 8, 8}}), whole));
  const wan_vae::Options tiled{.tiling = wan_vae::Tiling{32, 32, 16, 24}};
  std::vector<Tensor> parts;
  decode(
      *weights_, config_, latents, [&](const Tensor& frames) { parts.push_back(frames); }, tiled);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].size(1), 1);
  EXPECT_EQ(parts[1].size(1), 4);
  const Tensor joined = at::cat(parts, 1);
  EXPECT_EQ(joined.sizes(), whole.sizes());
  // The first tile is whole up to where its neighbours begin.
  const Tensor first = decode(*weights_, config_, latents.narrow(2, 0, 4));
  EXPECT_TRUE(at::equal(joined.narrow(2, 0, 16).narrow(3, 0, 24), first.narrow(2, 0, 16).narrow(3, 0, 24)));
}

TEST_F(WanVae, RefusesWrongInputs) {
  const auto refuse = [&](const std::string& part, at::IntArrayRef shape) {
    expect_error(ErrorKind::kRequest, part, [&] { encode(*weights_, config_, at::zeros(shape)); });
  };
  refuse("4 · n + 1 frames", {3, 4, 16, 16});
  refuse("multiples of 8", {3, 5, 16, 20});
  refuse("[3, F, H, W]", {1, 3, 5, 16, 16});
  expect_error(ErrorKind::kRequest, "[4, T, h, w]", [&] {
    decode(*weights_, config_, at::zeros({16, 1, 2, 2}));
  });
  expect_error(ErrorKind::kRequest, "0 or more", [&] {
    decode(*weights_, config_, at::zeros({4, 1, 2, 2}), {.chunk = -1});
  });
  for (const auto& tiling :
       {wan_vae::Tiling{16, 16, 24, 16}, wan_vae::Tiling{16, 20, 16, 16}, wan_vae::Tiling{16, 16, 16, 0}})
    expect_error(ErrorKind::kRequest, "tiling", [&] {
      decode(*weights_, config_, at::zeros({4, 1, 3, 3}), {.tiling = tiling});
    });
}

TEST(WanVaeLatents, BothArithmetics) {
  const wan_vae::Config config;
  const Tensor x = at::randn({16, 2, 3, 4});
  const Tensor exact = wan_vae::normalise(x, config, wan_vae::Statistics::kFloat32);
  EXPECT_NEAR(exact[0][0][0][0].item<double>(), (x[0][0][0][0].item<double>() + 0.7571) / 2.8184, 1e-6);
  EXPECT_LE(max_abs(wan_vae::denormalise(exact, config, wan_vae::Statistics::kFloat32), x), 2e-6);
  // Spec §8.2: bf16(1/std) and bf16(mean) of the first channel, every step rounded to bfloat16.
  const auto bf16 = [](double v) { return static_cast<float>(c10::BFloat16(static_cast<float>(v))); };
  const float first = x[0][0][0][0].item<float>();
  EXPECT_EQ(wan_vae::normalise(x, config, wan_vae::Statistics::kBfloat16)[0][0][0][0].item<float>(),
            bf16(bf16(bf16(first) + 0.7578125) * 0.35546875));
  EXPECT_EQ(wan_vae::denormalise(x, config, wan_vae::Statistics::kBfloat16)[0][0][0][0].item<float>(),
            bf16(bf16(bf16(first) / 0.35546875) - 0.7578125));
}

TEST(WanVaeConfig, NamesTheFieldThatIsWrong) {
  TempDir dir;
  const auto refuse = [&](ErrorKind kind, const std::string& json, const std::string& part) {
    write_file(dir / "config.json", json);
    expect_error(kind, part, [&] { wan_vae::read_config(dir / "config.json"); });
  };
  refuse(ErrorKind::kCheckpoint, R"({"base_dim": 0})", "base_dim");
  refuse(ErrorKind::kCheckpoint, R"({"base_dim": "96"})", "base_dim");
  refuse(ErrorKind::kCheckpoint, R"({"z_dim": 4})", "latents_mean");
  refuse(ErrorKind::kCheckpoint, R"({"temperal_downsample": [true]})", "temperal_downsample");
  refuse(ErrorKind::kCheckpoint, R"({"base_dim": 1, "dim_mult": [1, 1, 1, 1]})", "at least 2");
  refuse(ErrorKind::kUnsupported, R"({"is_residual": true})", "is_residual");
  refuse(ErrorKind::kUnsupported, R"({"patch_size": 2})", "patch_size");
  refuse(ErrorKind::kUnsupported, R"({"attn_scales": [1.0]})", "attn_scales");
  write_file(dir / "config.json", R"({"base_dim": 32, "patch_size": null})");
  EXPECT_EQ(wan_vae::read_config(dir / "config.json").base_dim, 32);
}

}  // namespace
}  // namespace orrery
