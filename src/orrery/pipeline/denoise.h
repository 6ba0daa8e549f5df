#pragma once
#include "orrery/parallel/team.h"
#include "orrery/pipeline/hooks.h"
#include "orrery/pipeline/predict_model.h"
#include "orrery/pipeline/prompt.h"

namespace orrery::pipeline {

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
