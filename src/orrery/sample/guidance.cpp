#include "orrery/sample/guidance.h"

#include "orrery/base/error.h"

namespace orrery::sample {

Tensor guided(const parallel::Context& ctx, double g, const std::function<Tensor(Branch)>& velocity) {
  if (g == 0) return velocity(Branch::kPositive);
  comm::Group& cfg = ctx.mesh.cfg();
  ensure(cfg.size() <= 2, "guidance has two branches; the mesh has ", cfg.size(), " cfg groups");
  Tensor positive, negative;
  if (cfg.size() == 2) {
    const Tensor mine = velocity(cfg.rank() == 0 ? Branch::kPositive : Branch::kNegative);
    const comm::Extents one = {TensorSpec{mine.sizes().vec(), mine.scalar_type()}};
    const auto both = cfg.exchange({{mine}, {mine}}, std::vector<comm::Extents>{one, one})->wait();
    positive = both[0][0], negative = both[1][0];
  } else {
    positive = velocity(Branch::kPositive), negative = velocity(Branch::kNegative);
  }
  return positive + g * (positive - negative);
}

}  // namespace orrery::sample
