#pragma once
#include "orrery/models/wan_vae/config.h"

namespace orrery::wan_vae {

/// In which precision latents are brought to unit scale, where the references differ: diffusers computes in
/// float32; the official code keeps mean, std and 1/std as bfloat16 tensors and rounds every step to bfloat16
/// (spec cosmos-predict2.5 §8.2).
enum class Statistics { kFloat32, kBfloat16 };

/// (mean − latents_mean) · (1 / latents_std): what the transformer sees. mean: [z, T, h, w] float32, as
/// encode() gives it; the result is float32.
Tensor normalise(const Tensor& mean, const Config& config, Statistics statistics);

/// latents / (1 / latents_std) + latents_mean: what decode() takes. latents: [z, T, h, w] float32; the result
/// is float32.
Tensor denormalise(const Tensor& latents, const Config& config, Statistics statistics);

}  // namespace orrery::wan_vae
