#pragma once
#include <functional>

#include "orrery/media/frames.h"
#include "orrery/models/cosmos/reference.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/parallel/team.h"
#include "orrery/pipeline/hooks.h"
#include "orrery/pipeline/prompt.h"

namespace orrery::pipeline {

/// What stays the same from clip to clip of a request to a Cosmos family.
struct CosmosRun {
  const CosmosCheckpoint& checkpoint;
  const cosmos::Reference& reference;
  const parallel::Team& team;
  const config::Request& request;
  const Hooks& hooks;
  double guidance = 0;  // 0: one branch only
  PromptEmbeds text;

  /// [1, C, T, h, w] of a clip of so many frames.
  Shape latent_shape(int64_t frames) const;
};

/// Embeds the prompts that this process needs, on the team that the request's guidance wants. Errors of
/// embed_prompts.
CosmosRun begin_run(const CosmosCheckpoint& checkpoint, const cosmos::Reference& reference,
                    const parallel::Team& team, const config::Request& request, const Hooks& hooks);

/// [C, T, h, w] float32: what the request brings as init_latents, else `draw(shape)`. Error of kind request
/// for latents of another shape.
Tensor initial_noise(const CosmosRun& run, int64_t frames, const std::function<Tensor(const Shape&)>& draw);

/// Frames as normalised latents [C, n, h, w] float32, in the arithmetic of `reference`; n = 0 without frames
/// (then of the width and height of `latents`, [1, C, T, h, w]). The first k latents depend on the first
/// 4(k − 1) + 1 frames only (spec cosmos-predict2.5 §7.1).
Tensor encode_frames(const Checkpoint& checkpoint, const cosmos::Reference& reference,
                     const media::Frames& frames, const Shape& latents, const wan_vae::Options& options = {});

/// The same of pixels [3, F, H, W] float32 in −1 … 1.
Tensor encode_pixels(const Checkpoint& checkpoint, const cosmos::Reference& reference, const Tensor& pixels,
                     const wan_vae::Options& options = {});

/// Decodes latents [C, T, h, w] to so many frames, the first of which is number `first` of the video; no
/// frames but for the first process. `also` sees the pixels as they are decoded.
media::Frames decode_frames(const CosmosRun& run, const Tensor& latents, int64_t frames, int64_t first = 0,
                            const std::function<void(const Tensor& pixels)>& also = {});

}  // namespace orrery::pipeline
