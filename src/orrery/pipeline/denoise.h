#pragma once
// Spec cosmos-predict2.5 §5 to §7, cosmos-transfer2.5 §5.4. Origin: nvidia-cosmos/cosmos-predict2.5 50369b8,
// video2world_model_rectified_flow.py.
#include <ATen/ops/cat.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "orrery/models/cosmos/reference.h"
#include "orrery/pipeline/steps.h"
#include "orrery/sample/few_step.h"
#include "orrery/sample/guidance.h"
#include "orrery/sample/sigmas.h"
#include "orrery/sample/unipc.h"

namespace orrery::pipeline {

/// What one clip is made from.
struct Clip {
  Tensor noise;  // [C, T, h, w] float32
  Tensor given;  // [C, n, h, w] float32: the latents of the first n frames, n ≥ 0
  sample::Schedule schedule;
  double guidance = 0;         // 0: the negative branch is not evaluated
  float conditional_time = 0;  // of the given frames, in sigma units; negative: the same as the others'
  bool few_step = false;       // a distilled model's sampler, and times rounded to bfloat16
};

/// A Cosmos network, and what it needs of a clip to evaluate it: the same for both prompts.
template <parallel::BlockModel Model>
struct Network {
  const Model& model;
  int64_t tokens;                               // of the clip
  typename Model::Prepared positive, negative;  // empty where this process does not evaluate that branch
  std::function<typename Model::Step(const std::vector<float>& times)> step;
  std::function<parallel::Tokens(const Tensor& x, int64_t i)> embed;  // of sample x at step i
  std::function<Tensor(const Tensor& tokens)> velocity;
};

/// The first frames of `first`, then the remaining ones of `rest`: x·mask + y·(1 − mask) for a mask of
/// leading frames.
inline Tensor lead(const Tensor& first, const Tensor& rest) {
  const int64_t n = first.size(1);
  return n == 0 ? rest : at::cat(std::vector<Tensor>{first, rest.narrow(1, n, rest.size(1) - n)}, 1);
}

/// Denoises on every rank of the team and returns the final latents [C, T, h, w] float32, which on the given
/// frames lie on the straight line to their noise and are not pasted over (spec cosmos-predict2.5 §7.3,
/// §7.4). The bits do not depend on the team. Errors: cancelled, and internal if the velocity is not finite
/// (names step and block).
template <parallel::BlockModel Model>
Tensor denoise(const Network<Model>& network, const cosmos::Reference& reference, const parallel::Team& team,
               const Clip& clip, const Hooks& hooks) {
  const auto time_kind =
      reference.integer_time ? sample::NetworkTime::kTruncated : sample::NetworkTime::kSigma;
  const int64_t given = clip.given.size(1);
  const auto line = clip.noise.narrow(1, 0, given) - clip.given;
  const auto velocity = [&](const parallel::Context& ctx, const Tensor& x, int64_t i,
                            parallel::BlockPolicy& policy) {
    std::vector<float> times(static_cast<size_t>(clip.noise.size(1)),
                             sample::network_time(clip.schedule, i, time_kind));
    if (clip.conditional_time >= 0) std::fill_n(times.begin(), given, clip.conditional_time);
    if (clip.few_step)
      for (float& time : times) time = c10::BFloat16(time);
    const auto step = network.step(times);
    const auto tokens = network.embed(x, i);
    return sample::guided(ctx, clip.guidance, [&](sample::Branch branch) {
      const auto& prepared = branch == sample::Branch::kPositive ? network.positive : network.negative;
      return lead(line, network.velocity(parallel::run(ctx, network.model, prepared, step, tokens, policy)));
    });
  };
  return run_steps(
      team, {clip.schedule.evaluations(), network.model.block_count(), network.tokens, velocity},
      [&] {
        return clip.few_step ? solver(sample::FewStep(clip.schedule.sigmas, clip.noise))
                             : solver(sample::UniPC(clip.schedule.sigmas, clip.noise));
      },
      hooks);
}

}  // namespace orrery::pipeline
