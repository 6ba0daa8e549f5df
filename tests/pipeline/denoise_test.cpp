#include "orrery/pipeline/denoise.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/sample/noise.h"

namespace orrery::pipeline {
namespace {

constexpr int64_t kChannels = 2, kFrames = 3, kHeight = 2, kWidth = 5;

/// A network of one block whose velocity is (noise − clean): what a perfect one gives on a straight path.
struct Perfect {
  struct Prepared {};
  struct Step {};
  struct Stream {
    Tensor hidden;
    const Tensor& state() const { return hidden; }
  };
  int64_t block_count() const { return 1; }
  Stream embed(const parallel::Context&, const Prepared&, const Step&, const parallel::Tokens& tokens) const {
    return {tokens.values.clone()};
  }
  void block(const parallel::Context&, const Prepared&, const Step&, int64_t, Stream&) const {}
  Tensor unembed(const parallel::Context&, const Step&, const Stream& stream) const { return stream.hidden; }
};

Tensor random(uint64_t seed, int64_t frames = kFrames) {
  return sample::torch_noise({kChannels, frames, kHeight, kWidth}, sample::torch_generator(seed));
}

struct FewSteps {
  Tensor noise = random(1), clean = random(2), given = random(3, 1);
  std::vector<std::vector<float>> times;
  std::vector<Tensor> samples;

  Tensor run() {
    const Perfect model;
    const int64_t tokens = kFrames * kHeight * kWidth;
    const auto flat = [&](const Tensor& x) { return x.reshape({kChannels, tokens}).t().contiguous(); };
    const Network<Perfect> network{
        model,
        tokens,
        {},
        {},
        [&](const std::vector<float>& t) { return times.push_back(t), Perfect::Step(); },
        [&](const Tensor& x, int64_t) {
          samples.push_back(x.clone());
          return parallel::Tokens{flat(noise - clean), at::zeros({tokens, 2}), at::zeros({tokens}, at::kInt)};
        },
        [&](const Tensor& v) { return v.t().reshape(noise.sizes()).contiguous(); }};
    const Clip clip{noise, given, sample::distilled(4), 0, 1e-4f, /*few_step=*/true};
    auto reference = cosmos::kOfficial;
    reference.integer_time = false;
    return denoise(network, reference, parallel::Team({}, {}, 1), clip, {});
  }
};

TEST(Denoise, ADistilledModelHearsBfloat16TimesAndKeepsGivenFramesOnTheirLine) {
  FewSteps run;
  const Tensor result = run.run();
  // 1, 15/16, 5/6 and 5/8 as bfloat16; σ is not truncated to thousandths.
  const std::vector<float> expected = {1, 0.9375f, 0.83203125f, 0.625f};
  ASSERT_EQ(run.times.size(), 4);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_THAT(run.times[i], ::testing::ElementsAre(c10::BFloat16(1e-4f), expected[i], expected[i])) << i;

  const Tensor clean = lead(run.given, run.clean);
  const auto sigmas = sample::distilled(4).sigmas;
  for (size_t i = 0; i < 4; ++i) {
    const double sigma = sigmas[i];
    const Tensor on_line = clean * (1 - sigma) + run.noise * sigma;
    EXPECT_LT(at::abs(run.samples[i] - on_line).max().item<double>(), 2e-6) << i;
  }
  EXPECT_LT(at::abs(result - clean).max().item<double>(), 2e-6);
}

}  // namespace
}  // namespace orrery::pipeline
