#pragma once
#include <functional>

#include "orrery/parallel/run.h"
#include "orrery/parallel/team.h"
#include "orrery/pipeline/hooks.h"

namespace orrery::pipeline {

/// What the loop over noise levels needs to know of a network.
struct Evaluations {
  int64_t steps = 0;   // one evaluation each
  int64_t blocks = 0;  // of the network
  int64_t tokens = 0;  // of its sequence, on all ranks together
  /// The velocity of sample x at step i, guidance included: the same on every rank.
  std::function<Tensor(const parallel::Context& ctx, const Tensor& x, int64_t i,
                       parallel::BlockPolicy& policy)>
      velocity;
};

/// Where the loop stands: begins at the noise, goes on by one velocity.
struct Solver {
  std::function<Tensor(const Tensor& velocity)> step;  // the next sample
  Tensor start;
};

/// Goes through all steps on every rank of the team, with a solver of its own on each, and returns the last
/// sample. The bits do not depend on the team. Errors: cancelled, and internal if the velocity is not finite
/// (names step and block).
Tensor run_steps(const parallel::Team& team, const Evaluations& evaluations,
                 const std::function<Solver()>& make_solver, const Hooks& hooks);

/// A Solver over a class of sample/ that has sample() and step().
template <class Method>
Solver solver(Method method) {
  const Tensor start = method.sample();
  return {[method = std::move(method)](const Tensor& v) mutable { return method.step(v); }, start};
}

}  // namespace orrery::pipeline
