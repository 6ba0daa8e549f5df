#pragma once
#include <functional>
#include <vector>

#include "orrery/comm/run_ranks.h"
#include "orrery/parallel/context.h"
#include "orrery/parallel/tuning.h"

namespace orrery::testing {

/// What fn returns on every rank of a mesh of threads, in rank order.
template <class Result = Tensor>
std::vector<Result> on_ranks(const comm::MeshShape& shape, const config::Plan& plan,
                             const std::function<Result(const parallel::Context&)>& fn,
                             const comm::Decorate& decorate = {}, int threads = 1) {
  std::vector<Result> results(static_cast<size_t>(shape.size()));
  const auto meshes = comm::make_thread_meshes(shape, decorate);
  comm::run_ranks(meshes, threads, [&](const comm::Mesh& mesh) {
    parallel::Tuning tuning(plan);
    results[static_cast<size_t>(mesh.rank())] = fn({mesh, plan, tuning});
  });
  return results;
}

/// "off", "cut 2" or "overlap 3" as a plan.
inline config::Plan in_chunks(const config::Chunks& chunks) {
  config::Plan plan;
  plan.alltoall_cut = std::to_string(chunks.overlap ? 0 : chunks.count);
  plan.alltoall_overlap = std::to_string(chunks.overlap ? chunks.count : 0);
  return plan;
}

/// |a − b| / |b| in the L2 norm.
inline double relative(const Tensor& a, const Tensor& b) {
  const Tensor wide = b.to(at::kDouble);
  return ((a.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

}  // namespace orrery::testing
