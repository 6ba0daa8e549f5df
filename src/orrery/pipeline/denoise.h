#pragma once
#include <functional>
#include <string>

#include "orrery/parallel/team.h"
#include "orrery/pipeline/predict_model.h"
#include "orrery/pipeline/prompt.h"

namespace orrery::pipeline {

/// How the caller follows a run and ends it early. Called on the thread that started the run; any may be
/// empty.
struct Hooks {
  std::function<void(const std::string& stage, int64_t step, int64_t steps)> progress;
  std::function<bool()> cancelled;

  /// Hears at once that a rank that is a thread has failed, on that thread, while others may still compute.
  comm::OnFailure failed = {};

  /// Sees what a run computes on its way, under names that are the same on any plan: "text", "negative text",
  /// "block N" and "negative block N" of the first step's first kObservedBlocks, "step N", "pixels N". With
  /// ranks that are processes, all of them observe or none; those other than rank 0's see parts only.
  std::function<void(const std::string& what, const Tensor& value)> observe = {};
  static constexpr int64_t kObservedBlocks = 3;

  void report(const std::string& stage, int64_t step = 0, int64_t steps = 0) const {
    if (progress) progress(stage, step, steps);
  }
  void show(const std::string& what, const Tensor& value) const {
    if (observe && value.defined()) observe(what, value);
  }
  /// Throws an Error of kind cancelled if the caller asks for it.
  void check() const;
};

/// What cross-attention needs of both prompts: computed once per request, after which the embeddings can go.
struct Prompts {
  cosmos::Prepared positive, negative;  // empty where this process does not evaluate that branch
};

/// latents: [C, T, h, w] of the clips that are to be made.
Prompts prepare_prompts(const cosmos::Transformer& model, const PromptEmbeds& text, at::IntArrayRef latents);

/// What one clip is made from.
struct Clip {
  Tensor noise;  // [C, T, h, w] float32
  Tensor given;  // [C, n, h, w] float32: the latents of the first n frames, n ≥ 0
  sample::Schedule schedule;
  double guidance = 0;         // 0: the negative branch is not evaluated
  float conditional_time = 0;  // of the given frames, in sigma units; negative: the same as the others'
};

/// Denoises on every rank of the team and returns the final latents [C, T, h, w] float32, which on the given
/// frames lie on the straight line to their noise and are not pasted over (spec cosmos-predict2.5 §7.3,
/// §7.4). The bits do not depend on the team. Errors: cancelled, and internal if the velocity is not finite
/// (names step and block).
Tensor denoise(const cosmos::Transformer& model, const cosmos::Reference& reference,
               const parallel::Team& team, const Prompts& prompts, const Clip& clip, const Hooks& hooks);

}  // namespace orrery::pipeline
