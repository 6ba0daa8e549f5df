#include <ATen/ops/empty.h>

#include "orrery/base/error.h"
#include "orrery/models/wan_vae/blocks.h"
#include "orrery/models/wan_vae/chunks.h"

namespace orrery::wan_vae {
namespace {

/// latents [T, h, w, z] → frames [F, H, W, 3].
Tensor frames_of(const Decoder& w, const Tensor& latents, Memory& memory) {
  Tensor x = conv_block(w.conv_in, latents, memory);
  x = mid_block(w.mid, std::move(x), memory);
  for (const DecoderLevel& level : w.levels) {
    for (const ResidualBlock& block : level.resnets) x = residual(block, std::move(x), memory);
    if (level.upsampler.conv.weight.defined()) x = upsample(level.upsampler, x, memory);
  }
  return norm_conv(w.norm_out, w.conv_out, x, memory);
}

void check(const Config& c, const Tensor& latents) {
  require(
      latents.dim() == 4 && latents.size(0) == c.z_dim && latents.numel() > 0 && latents.is_floating_point(),
      "VAE decode: expected floating latents [", c.z_dim, ", T, h, w], got ", latents.sizes(), " ",
      latents.scalar_type());
}

}  // namespace

void decode(const Weights& weights, const Config& config, const Tensor& latents, const FrameSink& sink,
            Options options) {
  check(config, latents);
  const at::ScalarType dtype = weights.post_quant.weight.scalar_type();
  const int64_t factor = config.spatial_factor();
  Memory memory;
  for (const Chunk& chunk :
       chunks(config, options, latents.size(1), factor * latents.size(2), factor * latents.size(3), dtype)) {
    memory.begin(chunk.first, chunk.last);
    const Tensor z =
        latents.narrow(1, chunk.begin, chunk.end - chunk.begin).permute({1, 2, 3, 0}).to(dtype).contiguous();
    const Tensor frames = frames_of(weights.decoder, pointwise(weights.post_quant, z), memory);
    sink(frames.permute({3, 0, 1, 2}).to(at::kFloat).contiguous());
  }
}

Tensor decode(const Weights& weights, const Config& config, const Tensor& latents, Options options) {
  check(config, latents);
  const int64_t factor = config.spatial_factor();
  const Tensor clip = at::empty(
      {config.channels, config.frames(latents.size(1)), factor * latents.size(2), factor * latents.size(3)},
      latents.options().dtype(at::kFloat));
  int64_t done = 0;
  decode(
      weights, config, latents,
      [&](const Tensor& frames) {
        clip.narrow(1, done, frames.size(1)).copy_(frames);
        done += frames.size(1);
      },
      options);
  return clip;
}

}  // namespace orrery::wan_vae
