#include <ATen/ops/empty.h>

#include "orrery/base/error.h"
#include "orrery/models/wan_vae/blocks.h"
#include "orrery/models/wan_vae/chunks.h"
#include "orrery/models/wan_vae/tiles.h"

namespace orrery::wan_vae {
namespace {

/// latents [T, h, w, z] → frames [F, H, W, 3].
Tensor frames_of(const Decoder& w, const Tensor& latents, Surroundings& around) {
  Tensor x = conv_block(w.conv_in, latents, around);
  x = mid_block(w.mid, std::move(x), around);
  for (const DecoderLevel& level : w.levels) {
    for (const ResidualBlock& block : level.resnets) x = residual(block, std::move(x), around);
    if (level.upsampler.conv.weight.defined()) x = upsample(level.upsampler, x, around);
  }
  return norm_conv(w.norm_out, w.conv_out, x, around);
}

void check(const Config& c, const Tensor& latents) {
  require(
      latents.dim() == 4 && latents.size(0) == c.z_dim && latents.numel() > 0 && latents.is_floating_point(),
      "VAE decode: expected floating latents [", c.z_dim, ", T, h, w], got ", latents.sizes(), " ",
      latents.scalar_type());
}

void decode_picture(const Weights& weights, const Config& config, const Tensor& latents,
                    const FrameSink& sink, const Options& options) {
  const at::ScalarType dtype = weights.post_quant.weight.scalar_type();
  const int64_t rows = latents.size(2), columns = latents.size(3), factor = config.spatial_factor();
  const parallel::Rows shares(rows, options.group);
  const auto own = shares.own();
  Surroundings around(shares);
  for (const Chunk& chunk :
       chunks(config, options, latents.size(1), factor * rows, factor * columns, dtype)) {
    around.begin(chunk.first, chunk.last);
    const Tensor z = latents.narrow(1, chunk.begin, chunk.end - chunk.begin)
                         .narrow(2, own.begin, own.size())
                         .permute({1, 2, 3, 0})
                         .to(dtype)
                         .contiguous();
    const Tensor pixels = frames_of(weights.decoder, pointwise(weights.post_quant, z), around);
    const Tensor frames = shares.gather_to_first(pixels.permute({3, 0, 1, 2}), /*dim=*/2, factor);
    if (frames.defined()) sink(frames.to(at::kFloat).contiguous());
    if (options.between) options.between();
  }
}

/// A clip that frames are put into as they come.
class Clip {
 public:
  Clip(const Config& config, const Tensor& latents)
      : frames_(config.frames(latents.size(1))),
        channels_(config.channels),
        height_(config.spatial_factor() * latents.size(2)),
        width_(config.spatial_factor() * latents.size(3)) {}

  void append(const Tensor& frames) {
    if (!clip_.defined()) clip_ = at::empty({channels_, frames_, height_, width_}, frames.options());
    clip_.narrow(1, done_, frames.size(1)).copy_(frames);
    done_ += frames.size(1);
  }

  /// Undefined if no frame has come.
  const Tensor& get() const { return clip_; }

 private:
  int64_t frames_, channels_, height_, width_, done_ = 0;
  Tensor clip_;
};

Tensor decode_tiles(const Weights& weights, const Config& config, const Tensor& latents,
                    const Options& options) {
  const auto decode_tile = [&](Span down, Span across) {
    const Tensor tile = latents.narrow(2, down.begin, down.size).narrow(3, across.begin, across.size);
    Clip clip(config, tile);
    decode_picture(
        weights, config, tile, [&](const Tensor& frames) { clip.append(frames); }, options);
    return clip.get();
  };
  const int64_t factor = config.spatial_factor();
  return blended(latents.size(2), latents.size(3), *options.tiling, factor, /*scale=*/factor, decode_tile);
}

}  // namespace

void decode(const Weights& weights, const Config& config, const Tensor& latents, const FrameSink& sink,
            const Options& options) {
  check(config, latents);
  if (!needs_tiles(options, latents.size(2), latents.size(3), config.spatial_factor()))
    return decode_picture(weights, config, latents, sink, options);
  const Tensor clip = decode_tiles(weights, config, latents, options);
  for (int64_t begin = 0; clip.defined() && begin < clip.size(1);) {
    const int64_t count = begin == 0 ? 1 : config.temporal_factor();
    sink(clip.narrow(1, begin, count).contiguous());
    begin += count;
  }
}

Tensor decode(const Weights& weights, const Config& config, const Tensor& latents, const Options& options) {
  check(config, latents);
  Clip clip(config, latents);
  decode(
      weights, config, latents, [&](const Tensor& frames) { clip.append(frames); }, options);
  return clip.get();
}

}  // namespace orrery::wan_vae
