#include "orrery/pipeline/steps.h"

#include <ATen/ops/isfinite.h>

#include "orrery/base/error.h"
#include "orrery/comm/agreement.h"
#include "orrery/sample/policies.h"

namespace orrery::pipeline {
namespace {

/// Shows the first blocks of each branch; with one branch to a process, of its own.
std::unique_ptr<parallel::BlockPolicy> observed(const parallel::Context& ctx, int64_t tokens,
                                                const Hooks& hooks) {
  return std::make_unique<sample::ObserveBlocks>(
      ctx, tokens, Hooks::kObservedBlocks, [&](int64_t forward, int64_t block, const Tensor& state) {
        if (ctx.caller) hooks.show(concat(forward == 0 ? "" : "negative ", "block ", block + 1), state);
      });
}

/// Evaluates once more, looking at every block, and says where it went wrong. The velocity is the same on
/// every rank, so all of them come here together.
[[noreturn]] void explain(const parallel::Context& ctx, const Evaluations& evaluations, const Tensor& x,
                          int64_t step) {
  sample::FindNonFinite finder;
  (void)evaluations.velocity(ctx, x, step, finder);
  const int64_t blocks = evaluations.blocks;
  const int64_t first =
      blocks - parallel::largest(ctx, finder.first() == finder.kNone ? 0 : blocks - finder.first());
  comm::fail_together(
      ErrorKind::kInternal, "the latents are no longer finite at step ", step + 1, " of ", evaluations.steps,
      ", ",
      first == blocks ? std::string("after the last block") : concat("in block ", first, " of ", blocks),
      "; nothing is saved");
}

}  // namespace

void Hooks::check() const {
  if (cancelled && cancelled()) fail(ErrorKind::kCancelled, "cancelled; nothing is saved");
}

Tensor run_steps(const parallel::Team& team, const Evaluations& evaluations,
                 const std::function<Solver()>& make_solver, const Hooks& hooks) {
  const int64_t steps = evaluations.steps;
  Tensor latents = team.run(
      [&](const parallel::Context& ctx) {
        Solver solver = make_solver();
        Tensor x = solver.start;
        for (int64_t i = 0; i < steps; ++i) {
          const bool stop = parallel::any(ctx, [&] {
            hooks.report("denoise", i, steps);
            return hooks.cancelled && hooks.cancelled();
          });
          if (stop)
            comm::fail_together(ErrorKind::kCancelled, "cancelled at step ", i + 1, " of ", steps,
                                "; nothing is saved");
          const auto policy = i == 0 && hooks.observe ? observed(ctx, evaluations.tokens, hooks)
                                                      : std::make_unique<parallel::BlockPolicy>();
          const Tensor velocity = evaluations.velocity(ctx, x, i, *policy);
          if (!at::isfinite(velocity).all().item<bool>()) explain(ctx, evaluations, x, i);
          x = solver.step(velocity);
          if (ctx.caller) hooks.show(concat("step ", i + 1), x);
        }
        return x;
      },
      hooks.failed);
  hooks.report("denoise", steps, steps);
  return latents;
}

}  // namespace orrery::pipeline
