// Levels, times and trajectories of diffusers' FlowMatchEulerDiscreteScheduler.
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "orrery/sample/flow_euler.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace orrery::sample {
namespace {

using testing::Json;

/// The case's configuration through the reader that checkpoints take.
FlowShift shift_of(const Json& info, const Json& golden) {
  const testing::TempDir folder;
  const auto path = folder / "scheduler_config.json";
  std::ofstream(path) << info.at("configs").at(golden.at("config").get<std::string>());
  return read_flow_shift(path);
}

/// The model of these cases: v(x, σ) = x/2 + σ − x²/4, in the type of x.
Tensor velocity(const Tensor& x, double sigma) { return x * 0.5 + sigma - x * 0.25 * x; }

struct Golden {
  Json info;
  std::map<std::string, Tensor> tensors;
  double tolerance(const char* name) const { return info.at("tolerance").at(name); }
};

void check_times(const Golden& golden, const std::string& name, const std::vector<float>& sigmas) {
  const auto stored = golden.tensors.find(name + "/timesteps");
  if (stored == golden.tensors.end()) return;
  ASSERT_EQ(stored->second.size(0), std::ssize(sigmas) - 1);
  for (int64_t i = 0; i < stored->second.size(0); ++i)
    EXPECT_NEAR(flow_time(sigmas[static_cast<size_t>(i)], at::kFloat),
                stored->second[i].item<double>() / 1000, golden.tolerance("sigmas_max_abs"));
}

/// The largest deviation of a sample.
double check_trajectory(const Golden& golden, const std::string& name, const std::vector<float>& sigmas) {
  const Tensor& trajectory = golden.tensors.at(name + "/trajectory");
  const bool exact = trajectory.scalar_type() == at::kBFloat16;
  FlowEuler solver(sigmas, golden.tensors.at("start").to(trajectory.scalar_type()));
  double worst = 0;
  while (!solver.done()) {
    const int64_t i = solver.index();
    solver.step(velocity(solver.sample(), sigmas[static_cast<size_t>(i)]));
    const double error = testing::max_abs(solver.sample(), trajectory[i]);
    EXPECT_LE(error, exact ? 0 : golden.tolerance("trajectory_max_abs")) << "step " << i;
    worst = std::max(worst, error);
  }
  return worst;
}

TEST(FlowEulerGolden, LevelsTimesAndTrajectories) {
  const auto folders = testing::golden_folders("schedulers/flow_euler");
  ASSERT_FALSE(folders.empty()) << testing::golden_root();
  double worst_sigma = 0, worst_sample = 0;
  for (const auto& folder : folders) {
    const Golden golden{testing::read_json(folder / "case.json"),
                        testing::read_tensors(folder / "golden.safetensors")};
    int checked = 0;
    for (const Json& c : golden.info.at("cases")) {
      const auto name = c.at("name").get<std::string>();
      SCOPED_TRACE(name);
      const auto shift = shift_of(golden.info, c);
      const int64_t tokens = c.value("image_tokens", 0);
      if (c.contains("mu")) {
        EXPECT_NEAR(shift.mu(tokens), c["mu"].get<double>(), 1e-15);
      }
      auto sigmas = flow_sigmas(shift, c.at("steps"), tokens);
      if (!golden.tensors.contains(name + "/sigmas")) {  // the reference gives NaN
        EXPECT_EQ(sigmas, (std::vector<float>{1, 0}));
        continue;
      }
      const Tensor levels = at::from_blob(sigmas.data(), std::ssize(sigmas), at::kFloat);
      const double error = testing::max_abs(levels, golden.tensors.at(name + "/sigmas"));
      EXPECT_LE(error, golden.tolerance("sigmas_max_abs"));
      worst_sigma = std::max(worst_sigma, error);
      check_times(golden, name, sigmas);
      worst_sample = std::max(worst_sample, check_trajectory(golden, name, sigmas));
      ++checked;
    }
    EXPECT_GT(checked, 0) << folder;
  }
  std::printf("largest deviation: sigmas %.2g, samples %.2g\n", worst_sigma, worst_sample);
}

}  // namespace
}  // namespace orrery::sample
