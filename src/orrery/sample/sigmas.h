#pragma once
#include <cstdint>
#include <vector>

namespace orrery::sample {

/// The noise levels of a run of N network evaluations (spec cosmos-predict2.5 §5.1 to §5.4). Levels are
/// computed in float64, as in the reference, and then rounded.
struct Schedule {
  std::vector<float> sigmas;  // N + 1, falling; sigmas[i] is the level before evaluation i, the last one is 0
  std::vector<int64_t> timesteps;  // N: trunc(1000 σ) of the float64 σ
  int64_t evaluations() const { return static_cast<int64_t>(timesteps.size()); }
};

/// Karras' ramp with ρ = 7 between two levels of the variance-exploding kind, mapped to flow by s / (1 + s).
/// The official option `num_steps` n gives n + 1 evaluations of this schedule. Errors, here and below:
/// request (evaluations < 1).
Schedule karras_flow(int64_t evaluations, double sigma_max = 200.0, double sigma_min = 0.01);

/// The official linear schedule: from 0.999 (the float32 number) down to 0, which is left out, then shifted.
Schedule shifted_linear(int64_t evaluations, double shift = 5.0);

/// The diffusers schedule with `flow_shift`: from 1 down to 1/1000, which is left out, then shifted; a first
/// level of exactly 1 is lowered by 1e-6.
Schedule flow_shift(int64_t evaluations, double shift);

/// The levels of a model that is distilled to few steps (spec cosmos-transfer2.5 §5.4): the first of
/// {1, 15/16, 5/6, 5/8} for up to 4 evaluations; for more, 1 down to 1/N, shifted by 5.
Schedule distilled(int64_t evaluations);

/// What the network is told instead of σ: the official code gives it trunc(1000 σ) / 1000, diffusers σ
/// itself.
enum class NetworkTime { kTruncated, kSigma };

/// The time of evaluation `step`, in the network's units (0 to 1).
float network_time(const Schedule& schedule, int64_t step, NetworkTime kind);

}  // namespace orrery::sample
