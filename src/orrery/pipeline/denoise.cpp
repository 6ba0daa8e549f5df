// Spec cosmos-predict2.5 §5 to §7. Origin: nvidia-cosmos/cosmos-predict2.5 50369b8,
// video2world_model_rectified_flow.py.
#include "orrery/pipeline/denoise.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>

#include "orrery/comm/agreement.h"
#include "orrery/sample/guidance.h"
#include "orrery/sample/policies.h"
#include "orrery/sample/unipc.h"

namespace orrery::pipeline {
namespace {

using sample::Branch;

/// The first frames of `first`, then the remaining ones of `rest`: x·mask + y·(1 − mask) for a mask of
/// leading frames.
Tensor lead(const Tensor& first, const Tensor& rest) {
  const int64_t n = first.size(1);
  return n == 0 ? rest : at::cat(std::vector<Tensor>{first, rest.narrow(1, n, rest.size(1) - n)}, 1);
}

/// One evaluation of a clip on one rank.
class Evaluation {
 public:
  Evaluation(const parallel::Context& ctx, const cosmos::Transformer& model, const cosmos::Grid& grid,
             const Clip& clip, const Prompts& prompts)
      : ctx_(ctx), model_(model), grid_(grid), clip_(clip), prompts_(prompts) {}

  Tensor velocity(const Tensor& x, float time, parallel::BlockPolicy& policy) const {
    const int64_t given = clip_.given.size(1);
    std::vector<float> times(static_cast<size_t>(grid_.frames), time);
    if (clip_.conditional_time >= 0) std::fill_n(times.begin(), given, clip_.conditional_time);
    const auto step = model_.step(times);
    const auto tokens = model_.tokens(grid_, lead(clip_.given, x), given);
    const auto line = clip_.noise.narrow(1, 0, given) - clip_.given;
    return sample::guided(ctx_, clip_.guidance, [&](Branch branch) {
      const auto& prepared = branch == Branch::kPositive ? prompts_.positive : prompts_.negative;
      return lead(line, model_.velocity(grid_, parallel::run(ctx_, model_, prepared, step, tokens, policy)));
    });
  }

 private:
  const parallel::Context& ctx_;
  const cosmos::Transformer& model_;
  const cosmos::Grid& grid_;
  const Clip& clip_;
  const Prompts& prompts_;
};

/// Shows the first blocks of each branch; with one branch to a process, of its own.
std::unique_ptr<parallel::BlockPolicy> observed(const parallel::Context& ctx, const cosmos::Grid& grid,
                                                const Hooks& hooks) {
  return std::make_unique<sample::ObserveBlocks>(
      ctx, grid.tokens(), Hooks::kObservedBlocks, [&](int64_t forward, int64_t block, const Tensor& state) {
        if (ctx.caller) hooks.show(concat(forward == 0 ? "" : "negative ", "block ", block + 1), state);
      });
}

/// Evaluates once more, looking at every block, and says where it went wrong. The velocity is the same on
/// every rank, so all of them come here together.
[[noreturn]] void explain(const parallel::Context& ctx, const Evaluation& evaluation, const Tensor& x,
                          float time, int64_t step, int64_t steps, int64_t blocks) {
  sample::FindNonFinite finder;
  (void)evaluation.velocity(x, time, finder);
  const int64_t first =
      blocks - parallel::largest(ctx, finder.first() == finder.kNone ? 0 : blocks - finder.first());
  comm::fail_together(
      ErrorKind::kInternal, "the latents are no longer finite at step ", step + 1, " of ", steps, ", ",
      first == blocks ? std::string("after the last block") : concat("in block ", first, " of ", blocks),
      "; nothing is saved");
}

}  // namespace

void Hooks::check() const {
  if (cancelled && cancelled()) fail(ErrorKind::kCancelled, "cancelled; nothing is saved");
}

Prompts prepare_prompts(const cosmos::Transformer& model, const PromptEmbeds& text, at::IntArrayRef latents) {
  const auto grid = model.grid(latents[1], latents[2], latents[3]);
  const auto prepare = [&](const Tensor& embeds) {
    return embeds.defined() ? model.prepare(grid, embeds) : cosmos::Prepared{};
  };
  return {prepare(text.positive), prepare(text.negative)};
}

Tensor denoise(const cosmos::Transformer& model, const cosmos::Reference& reference,
               const parallel::Team& team, const Prompts& prompts, const Clip& clip, const Hooks& hooks) {
  const auto grid = model.grid(clip.noise.size(1), clip.noise.size(2), clip.noise.size(3));
  const auto time_kind =
      reference.integer_time ? sample::NetworkTime::kTruncated : sample::NetworkTime::kSigma;
  const int64_t steps = clip.schedule.evaluations();
  Tensor latents = team.run(
      [&](const parallel::Context& ctx) {
        const Evaluation evaluation(ctx, model, grid, clip, prompts);
        sample::UniPC solver(clip.schedule.sigmas, clip.noise);
        for (int64_t i = 0; i < steps; ++i) {
          const bool stop = parallel::any(ctx, [&] {
            hooks.report("denoise", i, steps);
            return hooks.cancelled && hooks.cancelled();
          });
          if (stop)
            comm::fail_together(ErrorKind::kCancelled, "cancelled at step ", i + 1, " of ", steps,
                                "; nothing is saved");
          const float time = sample::network_time(clip.schedule, i, time_kind);
          const auto policy = i == 0 && hooks.observe ? observed(ctx, grid, hooks)
                                                      : std::make_unique<parallel::BlockPolicy>();
          const Tensor velocity = evaluation.velocity(solver.sample(), time, *policy);
          if (!at::isfinite(velocity).all().item<bool>())
            explain(ctx, evaluation, solver.sample(), time, i, steps, model.block_count());
          const Tensor& x = solver.step(velocity);
          if (ctx.caller) hooks.show(concat("step ", i + 1), x);
        }
        return solver.sample();
      },
      hooks.failed);
  hooks.report("denoise", steps, steps);
  return latents;
}

}  // namespace orrery::pipeline
