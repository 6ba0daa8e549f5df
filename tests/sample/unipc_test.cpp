#include "orrery/sample/unipc.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/platform/thread.h"
#include "orrery/sample/noise.h"
#include "orrery/sample/sigmas.h"

namespace orrery::sample {
namespace {

/// The toy model of spec cosmos-predict2.5 §5.7: v = x/2 + σ − x²/4.
Tensor toy(const Tensor& x, double sigma) { return x * 0.5 + sigma - x * x * 0.25; }

std::vector<float> toy_run(const std::vector<float>& sigmas) {
  UniPC solver(sigmas, at::full({1}, 1, at::kFloat));
  std::vector<float> samples;
  while (!solver.done())
    samples.push_back(
        solver.step(toy(solver.sample(), sigmas[static_cast<size_t>(solver.index())])).item<float>());
  return samples;
}

TEST(UniPC, FollowsThePrintedToyTrajectories) {
  using ::testing::FloatNear;
  using ::testing::Pointwise;
  EXPECT_THAT(toy_run(karras_flow(6).sigmas),
              Pointwise(FloatNear(1e-6f), {0.986855, 0.933802, 0.703544, 0.287118, 0.370899, 0.369305}));
  EXPECT_THAT(toy_run(shifted_linear(5).sigmas),
              Pointwise(FloatNear(1e-6f), {0.940452, 0.857612, 0.735759, 0.541424, 0.123504}));
}

TEST(UniPC, EndsExactlyAtItsLastEstimateOfTheClip) {
  const auto sigmas = karras_flow(3).sigmas;
  UniPC solver(sigmas, torch_noise({3, 5}, torch_generator(0)));
  for (int i = 0; i < 2; ++i) solver.step(toy(solver.sample(), sigmas[i]));
  const Tensor before = solver.sample(), velocity = toy(before, sigmas[2]);
  EXPECT_TRUE(solver.step(velocity).equal(before - velocity * static_cast<double>(sigmas[2])));
  EXPECT_TRUE(solver.done());
  EXPECT_EQ(solver.index(), 3);
}

TEST(UniPC, FindsAStraightPathExactly) {
  // v = ε − x0 everywhere: the sample at σ is (1 − σ) x0 + σ ε, whatever the levels.
  const Tensor noise = torch_noise({64}, torch_generator(1)), clip = torch_noise({64}, torch_generator(2));
  const auto sigmas = shifted_linear(7).sigmas;
  UniPC solver(sigmas, clip * (1 - sigmas[0]) + noise * sigmas[0]);
  while (!solver.done()) {
    const Tensor x = solver.step(noise - clip);
    const double sigma = sigmas[static_cast<size_t>(solver.index())];
    EXPECT_LT((x - (clip * (1 - sigma) + noise * sigma)).abs().max().item<float>(), 2e-6f);
  }
}

TEST(UniPC, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto run = [](int threads) {
    const platform::ThreadsGuard guard(threads);
    const auto sigmas = karras_flow(4).sigmas;
    UniPC solver(
        sigmas, torch_noise({100003}, torch_generator(3)));  // larger than a thread's smallest share, and odd
    while (!solver.done()) solver.step(toy(solver.sample(), sigmas[static_cast<size_t>(solver.index())]));
    return solver.sample();
  };
  const Tensor one = run(1);
  for (const int threads : {2, 3, 4}) EXPECT_TRUE(run(threads).equal(one)) << threads << " threads";
}

TEST(UniPC, LeavesItsInputsAlone) {
  const Tensor start = torch_noise({8}, torch_generator(4)), copy = start.clone();
  const auto sigmas = karras_flow(2).sigmas;
  UniPC solver(sigmas, start);
  const Tensor velocity = toy(start, sigmas[0]), velocity_copy = velocity.clone();
  solver.step(velocity);
  EXPECT_TRUE(start.equal(copy));
  EXPECT_TRUE(velocity.equal(velocity_copy));
}

TEST(UniPC, RefusesWhatItCannotSolve) {
  const Tensor x = at::full({2}, 1, at::kFloat);
  EXPECT_THROW(UniPC({1.f, 0.5f, 0.f}, x), Error);
  EXPECT_THROW(UniPC({0.5f, 0.5f, 0.f}, x), Error);
  EXPECT_THROW(UniPC({0.5f, 0.1f}, x), Error);
  EXPECT_THROW(UniPC({0.f}, x), Error);
  EXPECT_THROW(UniPC({0.5f, 0.f}, x.to(at::kDouble)), Error);
  UniPC solver({0.5f, 0.f}, x);
  EXPECT_THROW(solver.step(at::full({3}, 1, at::kFloat)), Error);
  solver.step(x);
  EXPECT_THROW(solver.step(x), Error);
}

}  // namespace
}  // namespace orrery::sample
