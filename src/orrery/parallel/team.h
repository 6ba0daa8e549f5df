#pragma once
#include <functional>

#include "orrery/base/tensor.h"
#include "orrery/parallel/context.h"

namespace orrery::parallel {

/// The ranks that run a model together: threads of this process that share its weights and cores.
class Team {
 public:
  /// threads: cores for the whole team, at least one per rank is used.
  Team(const config::Plan& plan, const config::Factors& factors, int threads);

  int ranks() const { return shape_.size(); }

  /// Runs fn on every rank at once and returns what rank 0's call, made on this thread, returned. When a rank
  /// throws, the others stop at their next exchange and the first error is thrown here.
  Tensor run(const std::function<Tensor(const Context&)>& fn) const;

 private:
  config::Plan plan_;
  comm::MeshShape shape_;
  int threads_;
};

/// Rank 0's answer, heard by every rank of the run: how whatever steers exchanges (seed, stop, skip) is
/// decided once. `ask` runs on rank 0 only, on the thread that called Team::run.
int64_t decide(const Context& ctx, const std::function<int64_t()>& ask);

/// The largest of the ranks' values, on every rank.
int64_t largest(const Context& ctx, int64_t value);

}  // namespace orrery::parallel
