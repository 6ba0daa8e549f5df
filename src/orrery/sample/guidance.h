#pragma once
#include <functional>

#include "orrery/parallel/context.h"

namespace orrery::sample {

enum class Branch { kPositive, kNegative };

// `velocity(branch)` is one forward, float32. On a mesh with two cfg groups each evaluates one branch and
// they exchange velocities once; otherwise both run here, positive first. Without guidance the positive
// branch alone is evaluated, in every group.

/// Classifier-free guidance in NVIDIA's convention, v₊ + g·(v₊ − v₋) (spec cosmos-predict2.5 §6): ordinary
/// guidance with w = 1 + g. g = 0 is without guidance.
Tensor guided(const parallel::Context& ctx, double g, const std::function<Tensor(Branch)>& velocity);

/// Qwen-Image's true classifier-free guidance (spec qwen-image §7): c = v₋ + w·(v₊ − v₋), brought back to the
/// length of v₊ token by token, c · ‖v₊‖ / ‖c‖ over the last dimension; 0 where c is. w ≤ 1 is without
/// guidance, as in the reference.
Tensor truly_guided(const parallel::Context& ctx, double w, const std::function<Tensor(Branch)>& velocity);

}  // namespace orrery::sample
