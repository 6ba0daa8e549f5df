// Spec cosmos-predict2.5 §5 to §7. Origin: nvidia-cosmos/cosmos-predict2.5 50369b8,
// video2world_model_rectified_flow.py.
#include "orrery/pipeline/denoise.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>

#include "orrery/base/error.h"
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

/// Evaluates once more, looking at every block, and says where it went wrong. The velocity is the same on
/// every rank, so all of them come here together.
[[noreturn]] void explain(const parallel::Context& ctx, const Evaluation& evaluation, const Tensor& x,
                          float time, int64_t step, int64_t steps, int64_t blocks) {
  sample::FindNonFinite finder;
  (void)evaluation.velocity(x, time, finder);
  const int64_t first =
      blocks - parallel::largest(ctx, finder.first() == finder.kNone ? 0 : blocks - finder.first());
  fail(ErrorKind::kInternal, "the latents are no longer finite at step ", step + 1, " of ", steps, ", ",
       first == blocks ? std::string("after the last block") : concat("in block ", first, " of ", blocks),
       "; nothing is saved");
}

}  // namespace

void Hooks::check() const {
  if (cancelled && cancelled()) fail(ErrorKind::kCancelled, "cancelled; nothing is saved");
}

Prompts prepare_prompts(const cosmos::Transformer& model, const PromptEmbeds& text, at::IntArrayRef latents) {
  const auto grid = model.grid(latents[1], latents[2], latents[3]);
  return {model.prepare(grid, text.positive),
          text.negative.defined() ? model.prepare(grid, text.negative) : cosmos::Prepared{}};
}

Tensor denoise(const cosmos::Transformer& model, const cosmos::Reference& reference,
               const parallel::Team& team, const Prompts& prompts, const Clip& clip, const Hooks& hooks,
               const std::function<void(const Tensor&)>& after_step) {
  const auto grid = model.grid(clip.noise.size(1), clip.noise.size(2), clip.noise.size(3));
  const auto time_kind =
      reference.integer_time ? sample::NetworkTime::kTruncated : sample::NetworkTime::kSigma;
  const int64_t steps = clip.schedule.evaluations();
  Tensor latents = team.run([&](const parallel::Context& ctx) {
    const Evaluation evaluation(ctx, model, grid, clip, prompts);
    sample::UniPC solver(clip.schedule.sigmas, clip.noise);
    for (int64_t i = 0; i < steps; ++i) {
      const bool stop = parallel::decide(ctx, [&] {
        hooks.report("denoise", i, steps);
        return int64_t{hooks.cancelled && hooks.cancelled()};
      });
      if (stop) fail(ErrorKind::kCancelled, "cancelled at step ", i + 1, " of ", steps, "; nothing is saved");
      const float time = sample::network_time(clip.schedule, i, time_kind);
      parallel::BlockPolicy policy;
      const Tensor velocity = evaluation.velocity(solver.sample(), time, policy);
      if (!at::isfinite(velocity).all().item<bool>())
        explain(ctx, evaluation, solver.sample(), time, i, steps, model.block_count());
      const Tensor& x = solver.step(velocity);
      if (after_step) parallel::decide(ctx, [&] { return after_step(x), int64_t{0}; });
    }
    return solver.sample();
  });
  hooks.report("denoise", steps, steps);
  return latents;
}

}  // namespace orrery::pipeline
