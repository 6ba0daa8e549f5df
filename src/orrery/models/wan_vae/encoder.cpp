#include <ATen/ops/empty.h>

#include "orrery/base/error.h"
#include "orrery/models/wan_vae/blocks.h"
#include "orrery/models/wan_vae/chunks.h"
#include "orrery/models/wan_vae/tiles.h"

namespace orrery::wan_vae {
namespace {

/// frames [F, H, W, 3] → moments [T, h, w, 2·z].
Tensor moments(const Encoder& w, const Tensor& frames, Surroundings& around) {
  Tensor x = conv_block(w.conv_in, frames, around);
  for (const EncoderLevel& level : w.levels) {
    for (const ResidualBlock& block : level.resnets) x = residual(block, std::move(x), around);
    if (level.downsampler.conv.weight.defined()) x = downsample(level.downsampler, x, around);
  }
  x = mid_block(w.mid, std::move(x), around);
  return norm_conv(w.norm_out, w.conv_out, x, around);
}

void check(const Config& c, const Tensor& pixels) {
  require(pixels.dim() == 4 && pixels.size(0) == c.channels && pixels.is_floating_point(),
          "VAE encode: expected floating pixels [", c.channels, ", F, H, W], got ", pixels.sizes(), " ",
          pixels.scalar_type());
  require(pixels.size(1) > 0 && (pixels.size(1) - 1) % c.temporal_factor() == 0, "VAE encode: expected ",
          c.temporal_factor(), " · n + 1 frames, got ", pixels.size(1));
  for (const int64_t side : {pixels.size(2), pixels.size(3)})
    require(side > 0 && side % c.spatial_factor() == 0, "VAE encode: expected sides that are multiples of ",
            c.spatial_factor(), ", got ", pixels.size(2), "×", pixels.size(3));
}

Tensor encode_picture(const Weights& weights, const Config& config, const Tensor& pixels,
                      const Options& options) {
  const at::ScalarType dtype = weights.quant.weight.scalar_type();
  const int64_t rows = pixels.size(2), columns = pixels.size(3), factor = config.spatial_factor(),
                latent_frames = config.latent_frames(pixels.size(1));
  // The other half of the moments is the log-variance, which a deterministic encoder does not use.
  const Pointwise mean = {weights.quant.weight.narrow(0, 0, config.z_dim),
                          weights.quant.bias.narrow(0, 0, config.z_dim)};
  const parallel::Rows shares(rows / factor, options.group);
  const auto own = shares.own(factor);
  const Tensor clip = pixels.narrow(2, own.begin, own.size());
  const Tensor out = at::empty({config.z_dim, latent_frames, own.size() / factor, columns / factor},
                               pixels.options().dtype(at::kFloat));
  Surroundings around(shares);
  for (const Chunk& chunk : chunks(config, options, latent_frames, rows, columns, dtype)) {
    around.begin(chunk.first, chunk.last);
    const int64_t begin = chunk.first ? 0 : config.frames(chunk.begin), end = config.frames(chunk.end);
    const Tensor frames = clip.narrow(1, begin, end - begin).permute({1, 2, 3, 0}).to(dtype);
    const Tensor latents = pointwise(mean, moments(weights.encoder, frames, around));
    out.narrow(1, chunk.begin, chunk.end - chunk.begin).copy_(latents.permute({3, 0, 1, 2}));
    if (options.between) options.between();
  }
  return shares.gather(out, /*dim=*/2);
}

}  // namespace

Tensor encode(const Weights& weights, const Config& config, const Tensor& pixels, const Options& options) {
  check(config, pixels);
  const int64_t factor = config.spatial_factor(), rows = pixels.size(2) / factor,
                columns = pixels.size(3) / factor;
  if (!needs_tiles(options, rows, columns, factor)) return encode_picture(weights, config, pixels, options);
  return blended(rows, columns, *options.tiling, factor, /*scale=*/1, [&](Span down, Span across) {
    const Tensor tile = pixels.narrow(2, factor * down.begin, factor * down.size)
                            .narrow(3, factor * across.begin, factor * across.size);
    return encode_picture(weights, config, tile, options);
  });
}

}  // namespace orrery::wan_vae
