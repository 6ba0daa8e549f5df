#pragma once
// The Wan 2.1 causal video VAE (spec cosmos-predict2.5 §8; diffusers,
// models/autoencoders/autoencoder_kl_wan.py, 0.42.1). Clips are [C, F, H, W] outside; inside, frames are [F,
// H, W, C]. A clip is carried through in chunks of frames; what the causal convolutions still need of past
// frames is remembered between chunks (causal.h), so the chunks do not show in the result beyond rounding,
// and memory is bounded by one chunk.
#include <functional>

#include "orrery/models/wan_vae/latents.h"
#include "orrery/models/wan_vae/weights.h"

namespace orrery::wan_vae {

/// Brings loaded weights into the form that encode and decode compute with, once: converted to `dtype`, which
/// is then the type of all arithmetic (float32, or bfloat16 where the machine multiplies it in hardware), and
/// laid out for its device's convolutions. The loaded tensors are let go.
void prepare(Weights& weights, at::ScalarType dtype);

/// How a clip is carried through. `chunk` is the number of latent frames computed together (the first is
/// always alone); 0 chooses it so that a chunk's activations stay within a few hundred megabytes.
struct Options {
  int64_t chunk = 0;
};

/// The mean of the posterior: [z, T, H/8, W/8] float32. pixels: [3, F, H, W] floating in [−1, 1] with F = 4(T
/// − 1) + 1 and H, W multiples of 8 (factors as the config has them); otherwise an Error of kind request.
/// weights must have been prepared. The result's first k frames depend on the first 4(k − 1) + 1 frames only.
Tensor encode(const Weights& weights, const Config& config, const Tensor& pixels, Options options = {});

/// Receives consecutive frames of a clip: [3, f, H, W] float32, its own to keep.
using FrameSink = std::function<void(const Tensor& frames)>;

/// Decodes chunk by chunk and hands the frames to `sink` in order, on the caller's thread, not clamped: 1
/// frame, then 4 for each latent frame. latents: [z, T, h, w] floating, denormalised (latents.h). What `sink`
/// throws ends the decoding.
void decode(const Weights& weights, const Config& config, const Tensor& latents, const FrameSink& sink,
            Options options = {});

/// The whole clip: [3, 4(T − 1) + 1, 8h, 8w] float32, not clamped.
Tensor decode(const Weights& weights, const Config& config, const Tensor& latents, Options options = {});

}  // namespace orrery::wan_vae
