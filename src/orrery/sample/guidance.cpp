#include "orrery/sample/guidance.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

struct Branches {
  Tensor positive, negative;
};

/// Both velocities on every rank.
Branches evaluate(const parallel::Context& ctx, const std::function<Tensor(Branch)>& velocity) {
  comm::Group& cfg = ctx.mesh.cfg();
  ensure(cfg.size() <= 2, "guidance has two branches; the mesh has ", cfg.size(), " cfg groups");
  if (cfg.size() == 1) {
    const Tensor positive = velocity(Branch::kPositive);
    return {positive, velocity(Branch::kNegative)};
  }
  const Tensor mine = velocity(cfg.rank() == 0 ? Branch::kPositive : Branch::kNegative);
  const comm::Extents one = {TensorSpec{mine.sizes().vec(), mine.scalar_type()}};
  const auto both = cfg.exchange({{mine}, {mine}}, std::vector<comm::Extents>{one, one})->wait();
  return {both[0][0], both[1][0]};
}

Tensor token_norm(const Tensor& v) { return at::linalg_vector_norm(v, 2, -1, /*keepdim=*/true); }

}  // namespace

Tensor guided(const parallel::Context& ctx, double g, const std::function<Tensor(Branch)>& velocity) {
  if (g == 0) return velocity(Branch::kPositive);
  const auto [positive, negative] = evaluate(ctx, velocity);
  return positive + g * (positive - negative);
}

Tensor truly_guided(const parallel::Context& ctx, double w, const std::function<Tensor(Branch)>& velocity) {
  if (w <= 1) return velocity(Branch::kPositive);
  const auto [positive, negative] = evaluate(ctx, velocity);
  const Tensor combined = negative + w * (positive - negative), length = token_norm(combined);
  return combined * (token_norm(positive) / length).masked_fill(length == 0, 0);
}

}  // namespace orrery::sample
