#include "orrery/parallel/team.h"

#include <ATen/ops/scalar_tensor.h>

#include "orrery/comm/collectives.h"
#include "orrery/comm/run_ranks.h"

namespace orrery::parallel {

Team::Team(const config::Plan& plan, const config::Factors& factors, int threads)
    : plan_(plan),
      shape_{static_cast<int>(factors.cfg), static_cast<int>(factors.ring),
             static_cast<int>(factors.ulysses)},
      threads_(std::max(1, threads / shape_.size())) {}

Tensor Team::run(const std::function<Tensor(const Context&)>& fn) const {
  Tensor result;
  const auto meshes = comm::make_thread_meshes(shape_);
  comm::run_ranks(meshes, threads_, [&](const comm::Mesh& mesh) {
    Tensor mine = fn(Context{mesh, plan_});
    if (mesh.rank() == 0) result = std::move(mine);
  });
  return result;
}

int64_t decide(const Context& ctx, const std::function<int64_t()>& ask) {
  return comm::agree(ctx.mesh.control(), ctx.mesh.rank() == 0 ? ask() : 0);
}

int64_t largest(const Context& ctx, int64_t value) {
  comm::Group& group = ctx.mesh.control();
  const auto all = comm::all_gather(group, at::scalar_tensor(value, at::kLong).view({1}), 0,
                                    std::vector<int64_t>(static_cast<size_t>(group.size()), 1));
  return all.max().item<int64_t>();
}

}  // namespace orrery::parallel
