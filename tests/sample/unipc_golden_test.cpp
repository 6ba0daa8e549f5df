// Levels, timesteps and trajectories of diffusers' UniPCMultistepScheduler.
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "orrery/sample/sigmas.h"
#include "orrery/sample/unipc.h"
#include "tests/support/golden.h"

namespace orrery::sample {
namespace {

using testing::Json;

Schedule schedule_of(const Json& golden) {
  const auto steps = golden.at("steps").get<int64_t>();
  const Json& config = golden.at("config");
  if (config.at("use_karras_sigmas"))
    return karras_flow(steps, config.at("sigma_max"), config.at("sigma_min"));
  // The official schedule has no name in a diffusers configuration: it is given there as levels of the
  // user's.
  const bool official = golden.at("name").get<std::string>().starts_with("official");
  const double shift = config.at("flow_shift");
  return official ? shifted_linear(steps, shift) : flow_shift(steps, shift);
}

/// The model of these cases: v(x, σ) = x/2 + σ − x²/4.
Tensor velocity(const Tensor& x, double sigma) { return x * 0.5 + sigma - x * x * 0.25; }

TEST(UniPCGolden, LevelsTimestepsAndTrajectories) {
  const auto folders = testing::golden_folders("schedulers/unipc");
  ASSERT_FALSE(folders.empty()) << testing::golden_root();
  double worst_sigma = 0, worst_sample = 0;
  for (const auto& folder : folders) {
    const Json info = testing::read_json(folder / "case.json");
    const auto tensors = testing::read_tensors(folder / "golden.safetensors");
    const Json& tolerance = info.at("tolerance");
    ASSERT_FALSE(info.at("cases").empty());
    for (const Json& golden : info.at("cases")) {
      const auto name = golden.at("name").get<std::string>();
      SCOPED_TRACE(name);
      Schedule schedule = schedule_of(golden);
      const Tensor sigmas = at::from_blob(schedule.sigmas.data(), std::ssize(schedule.sigmas), at::kFloat);
      const Tensor timesteps = at::from_blob(schedule.timesteps.data(), schedule.evaluations(), at::kLong);
      const double sigma_error = testing::max_abs(sigmas, tensors.at(name + "/sigmas"));
      EXPECT_LE(sigma_error, tolerance.at("sigmas_max_abs").get<double>());
      EXPECT_TRUE(timesteps.equal(tensors.at(name + "/timesteps")));
      UniPC solver(schedule.sigmas, tensors.at("start"));
      while (!solver.done()) {
        const int64_t i = solver.index();
        const double sigma = schedule.sigmas[static_cast<size_t>(i)];
        solver.step(velocity(solver.sample(), sigma));
        const double error = testing::max_abs(solver.sample(), tensors.at(name + "/trajectory")[i]);
        EXPECT_LE(error, tolerance.at("trajectory_max_abs").get<double>()) << "step " << i;
        worst_sample = std::max(worst_sample, error);
      }
      worst_sigma = std::max(worst_sigma, sigma_error);
    }
  }
  std::printf("largest deviation: sigmas %.2g, samples %.2g\n", worst_sigma, worst_sample);
}

}  // namespace
}  // namespace orrery::sample
