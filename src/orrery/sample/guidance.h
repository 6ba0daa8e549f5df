#pragma once
#include <functional>

#include "orrery/parallel/context.h"

namespace orrery::sample {

enum class Branch { kPositive, kNegative };

/// Classifier-free guidance in NVIDIA's convention, v₊ + g·(v₊ − v₋) (spec cosmos-predict2.5 §6): ordinary
/// guidance with w = 1 + g. `velocity(branch)` is one forward, float32. On a mesh with two cfg groups each
/// evaluates one branch and they exchange velocities once; otherwise both run here, positive first. g = 0
/// evaluates the positive branch only, in every group.
Tensor guided(const parallel::Context& ctx, double g, const std::function<Tensor(Branch)>& velocity);

}  // namespace orrery::sample
