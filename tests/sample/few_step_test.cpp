#include "orrery/sample/few_step.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "orrery/base/error.h"
#include "orrery/sample/noise.h"
#include "orrery/sample/sigmas.h"

namespace orrery::sample {
namespace {

Tensor toy(const Tensor& x, double sigma) { return x * 0.5 + sigma - x * x * 0.25; }

/// The sampler as spec cosmos-transfer2.5 §5.4 writes it, in TrigFlow's angles and samples: the network sees
/// x / (cos t + sin t) at σ = sin t / (cos t + sin t), and x0 becomes cos t'·x0 + sin t'·noise.
Tensor trig_flow(const std::vector<float>& sigmas, const Tensor& noise) {
  Tensor x = noise.to(at::kDouble), x0;
  for (size_t i = 0; i + 1 < sigmas.size(); ++i) {
    const double t = std::atan2(sigmas[i], 1 - sigmas[i]),
                 next = std::atan2(sigmas[i + 1], 1 - sigmas[i + 1]);
    const double scale = std::cos(t) + std::sin(t), sigma = std::sin(t) / scale;
    const Tensor flow = x / scale;
    x0 = flow - toy(flow.to(at::kFloat), sigma).to(at::kDouble) * sigma;
    x = x0 * std::cos(next) + noise.to(at::kDouble) * std::sin(next);
  }
  return x0;
}

TEST(FewStep, EqualsTheSamplerInTrigFlowsAngles) {
  for (const int steps : {1, 2, 3, 4, 7}) {
    const auto sigmas = distilled(steps).sigmas;
    const Tensor noise = torch_noise({4, 33}, torch_generator(3));
    FewStep sampler(sigmas, noise);
    for (int i = 0; i < steps; ++i) sampler.step(toy(sampler.sample(), sigmas[i]));
    const Tensor error = at::abs(sampler.sample() - trig_flow(sigmas, noise)).max();
    EXPECT_LT(error.item<double>(), 2e-6) << steps;
  }
}

TEST(FewStep, StaysOnAStraightPathToTheCleanSample) {
  const auto sigmas = distilled(4).sigmas;
  const Tensor noise = torch_noise({4, 33}, torch_generator(3)),
               clean = torch_noise({4, 33}, torch_generator(4));
  FewStep sampler(sigmas, noise);
  EXPECT_TRUE(at::equal(sampler.sample(), noise));
  for (int i = 0; i < 4; ++i) {
    const double next = sigmas[i + 1];
    const Tensor expected = clean * (1 - next) + noise * next;
    EXPECT_LT(at::abs(sampler.step(noise - clean) - expected).max().item<double>(), 2e-6) << i;
  }
}

TEST(FewStep, RefusesOtherLevelsAndShapes) {
  const Tensor noise = at::full({2, 3}, 1, at::kFloat);
  for (const std::vector<float>& sigmas :
       {std::vector<float>{}, {1}, {0.9f, 0}, {1, 0.5f}, {1, 0.5f, 0.5f, 0}})
    EXPECT_THROW(FewStep(sigmas, noise), Error);
  EXPECT_THROW(FewStep({1, 0}, noise.to(at::kDouble)), Error);
  FewStep sampler({1, 0}, noise);
  EXPECT_THROW(sampler.step(at::full({3, 2}, 1, at::kFloat)), Error);
  EXPECT_THROW(sampler.step(noise.to(at::kDouble)), Error);
  sampler.step(noise);
  EXPECT_THROW(sampler.step(noise), Error);
}

}  // namespace
}  // namespace orrery::sample
