#pragma once
#include "orrery/media/frames.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/parallel/team.h"
#include "orrery/pipeline/hooks.h"

namespace orrery::pipeline {

/// A view of the frames' levels: [F, H, W, 3] of bytes, which lives as long as they do; and such levels as
/// frames.
Tensor levels_of(const media::Frames& frames);
media::Frames frames_of(const Tensor& levels);

/// Frames → [3, F, H, W] float32 in −1 … 1. bf16: x/127.5 − 1 with every operation rounded to bfloat16, as
/// the official code does (spec cosmos-predict2.5 §7.1); otherwise 2·(x/255) − 1 as diffusers does.
Tensor to_tensor(const media::Frames& frames, bool bf16);

/// Appends decoded pixels [3, f, H, W] in −1 … 1 (clamped) as 8-bit frames: truncated or rounded (spec §9.4,
/// §7.5).
void append(media::Frames& frames, const Tensor& pixels, bool truncate);

/// How the VAE works in a run: shared over its processes, in tiles if the plan says so, and ended for all of
/// them when one is asked to end. Both arguments outlive the result.
wan_vae::Options vae_options(const parallel::Team& team, const Hooks& hooks);

}  // namespace orrery::pipeline
