// Sources: nvidia-cosmos/cosmos-predict2.5 @50369b8 (FlowUniPCMultistepScheduler) and huggingface/diffusers
// 0.42.1, schedulers/scheduling_unipc_multistep.py; spec cosmos-predict2.5 §5.1 to §5.4.
#include "orrery/sample/sigmas.h"

#include <cmath>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

constexpr double kTrainTimesteps = 1000;

/// numpy's linspace: multiples of the step, and exactly `to` at the end.
std::vector<double> linspace(double from, double to, int64_t count) {
  std::vector<double> values;
  const double step = count > 1 ? (to - from) / static_cast<double>(count - 1) : 0;
  for (int64_t i = 0; i < count; ++i) values.push_back(from + static_cast<double>(i) * step);
  if (count > 1) values.back() = to;
  return values;
}

void check(int64_t evaluations) { require(evaluations >= 1, "expected at least 1 step, got ", evaluations); }

Schedule rounded(const std::vector<double>& sigmas) {
  Schedule schedule;
  for (const double sigma : sigmas) {
    schedule.sigmas.push_back(static_cast<float>(sigma));
    schedule.timesteps.push_back(static_cast<int64_t>(sigma * kTrainTimesteps));
  }
  schedule.sigmas.push_back(0);
  return schedule;
}

/// A ramp without its last value, shifted: s σ / (1 + (s − 1) σ).
std::vector<double> shifted(std::vector<double> ramp, double shift) {
  ramp.pop_back();
  for (double& sigma : ramp) sigma = shift * sigma / (1 + (shift - 1) * sigma);
  return ramp;
}

}  // namespace

Schedule karras_flow(int64_t evaluations, double sigma_max, double sigma_min) {
  check(evaluations);
  constexpr double kRho = 7;
  const double high = std::pow(sigma_max, 1 / kRho), low = std::pow(sigma_min, 1 / kRho);
  std::vector<double> sigmas;
  for (const double u : linspace(0, 1, evaluations)) {
    const double s = std::pow(high + u * (low - high), kRho);
    sigmas.push_back(s / (s + 1));
  }
  return rounded(sigmas);
}

Schedule shifted_linear(int64_t evaluations, double shift) {
  check(evaluations);
  return rounded(shifted(linspace(static_cast<double>(0.999f), 0, evaluations + 1), shift));
}

Schedule flow_shift(int64_t evaluations, double shift) {
  check(evaluations);
  auto sigmas = shifted(linspace(1, 1 / kTrainTimesteps, evaluations + 1), shift);
  // At σ = 1 the solver's λ would be −∞.
  if (std::abs(sigmas[0] - 1) < 1e-6) sigmas[0] -= 1e-6;
  return rounded(sigmas);
}

Schedule distilled(int64_t evaluations) {
  check(evaluations);
  constexpr double kTrained[] = {1, 15. / 16, 5. / 6, 5. / 8};
  if (evaluations <= std::ssize(kTrained)) return rounded({kTrained, kTrained + evaluations});
  constexpr double kShift = 5;
  return rounded(shifted(linspace(1, 0, evaluations + 1), kShift));
}

float network_time(const Schedule& schedule, int64_t step, NetworkTime kind) {
  ensure(step >= 0 && step < schedule.evaluations(), "network_time: no step ", step, " of ",
         schedule.evaluations());
  const auto i = static_cast<size_t>(step);
  // timestep_scale 0.001 is applied in float32 (§2.2 item 1).
  return kind == NetworkTime::kTruncated ? static_cast<float>(schedule.timesteps[i]) * 0.001f
                                         : schedule.sigmas[i];
}

}  // namespace orrery::sample
