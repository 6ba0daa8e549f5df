#pragma once
// The Wan 2.1 causal video VAE (spec cosmos-predict2.5 §8; diffusers,
// models/autoencoders/autoencoder_kl_wan.py, 0.42.1). Clips are [C, F, H, W] outside; inside, frames are [F,
// H, W, C]. A clip is carried through in chunks of frames; what the causal convolutions still need of past
// frames is remembered between chunks (causal.h), so the chunks do not show in the result beyond rounding,
// and memory is bounded by one chunk.
#include <functional>
#include <optional>

#include "orrery/comm/group.h"
#include "orrery/models/wan_vae/latents.h"
#include "orrery/models/wan_vae/weights.h"

namespace orrery::wan_vae {

/// Brings the loaded weights that encode, or decode, needs into the form that it computes with: converted to
/// `dtype`, which is then the type of all arithmetic (float32, or bfloat16 where the machine multiplies it in
/// hardware), and laid out for their device's convolutions. Each loaded tensor is let go as soon as it is
/// converted. Weights that have been prepared stay as they are. Not while another thread encodes or decodes.
void prepare_encoder(Weights& weights, at::ScalarType dtype);
void prepare_decoder(Weights& weights, at::ScalarType dtype);

/// Overlapping tiles, computed one after the other, which bounds memory whatever the picture's size, and
/// blended linearly where they overlap: an approximation, since a tile does not see beyond its edges. As
/// diffusers' AutoencoderKLWan.enable_tiling, whose defaults these are; in pixels, multiples of the spatial
/// factor.
struct Tiling {
  int64_t rows = 256, columns = 256;              // of a tile
  int64_t row_stride = 192, column_stride = 192;  // from one to the next; at most its size
};

/// How a clip is carried through. Every member of `group` makes the call with equal arguments.
struct Options {
  /// Latent frames computed together (the first is always alone); 0: as many as keep a chunk's activations
  /// within a few hundred megabytes.
  int64_t chunk = 0;
  /// Shares the work by rows of latents. In float32 the bits do not depend on it.
  comm::Group* group = nullptr;
  /// For pictures larger than a tile.
  std::optional<Tiling> tiling = {};
  /// Called after each chunk. What it throws ends the call; it throws for all members of the group or none.
  std::function<void()> between = {};
};

/// The mean of the posterior: [z, T, H/8, W/8] float32, for every member of the group. pixels: [3, F, H, W]
/// floating in [−1, 1] with F = 4(T − 1) + 1 and H, W multiples of 8 (factors as the config has them);
/// otherwise an Error of kind request. The encoder must have been prepared. The result's first k frames
/// depend on the first 4(k − 1) + 1 frames only.
Tensor encode(const Weights& weights, const Config& config, const Tensor& pixels,
              const Options& options = {});

/// Receives consecutive frames of a clip: [3, f, H, W] float32, its own to keep.
using FrameSink = std::function<void(const Tensor& frames)>;

/// Decodes chunk by chunk and hands the frames to `sink` in order, on the caller's thread, not clamped: 1
/// frame, then 4 for each latent frame; with tiling, after the last tile. Only the group's first member
/// receives frames. latents: [z, T, h, w] floating, denormalised (latents.h). The decoder must have been
/// prepared. What `sink` throws ends the decoding.
void decode(const Weights& weights, const Config& config, const Tensor& latents, const FrameSink& sink,
            const Options& options = {});

/// The whole clip: [3, 4(T − 1) + 1, 8h, 8w] float32, not clamped; undefined but for the group's first
/// member.
Tensor decode(const Weights& weights, const Config& config, const Tensor& latents,
              const Options& options = {});

}  // namespace orrery::wan_vae
