#include "orrery/base/error.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/ops/conv_winograd.h"
#include "orrery/ops/upsample.h"

namespace orrery::wan_vae {
namespace {

/// Whether a convolution may be computed by tiles of 2×2 pixels. At the latents' own resolution the number of
/// rows may be odd, and a picture may be split there at odd rows: then the tiles, and with them the bits,
/// would depend on the split.
enum class Tiles : bool { kNo, kYes };

class Preparation {
 public:
  explicit Preparation(at::ScalarType dtype) : dtype_(dtype) {}

  void operator()(Conv& w, Tiles tiles) const {
    const Tensor weight = w.weight.to(dtype_);
    const bool winograd = tiles == Tiles::kYes && ops::winograd_fits(weight);
    w.form = winograd ? Conv::Form::kWinograd : Conv::Form::kDirect;
    w.weight = winograd ? ops::winograd_weight(weight) : weight.contiguous(at::MemoryFormat::ChannelsLast3d);
    w.bias = own(w.bias, dtype_);
  }

  void operator()(ResidualBlock& w, Tiles tiles) const {
    flatten(w.norm1);
    (*this)(w.conv1, tiles);
    flatten(w.norm2);
    (*this)(w.conv2, tiles);
    if (w.shortcut.weight.defined()) (*this)(w.shortcut);
  }

  void operator()(MidBlock& w) const {
    for (ResidualBlock& block : w.resnets) (*this)(block, Tiles::kNo);
    for (AttentionBlock& block : w.attentions) {
      flatten(block.norm);
      (*this)(block.to_qkv);
      (*this)(block.proj);
    }
  }

  void operator()(Pointwise& w) const {
    w.weight = own(w.weight.flatten(1), dtype_);
    w.bias = own(w.bias, dtype_);
  }

  void operator()(Resampler& w, bool up) const {
    if (!w.conv.weight.defined()) return;
    w.conv.weight = (up ? ops::upsample_weight(w.conv.weight) : w.conv.weight.unsqueeze(2))
                        .to(dtype_)
                        .contiguous(at::MemoryFormat::ChannelsLast3d);
    w.conv.bias = own(w.conv.bias, dtype_);
    if (w.time_conv.weight.defined()) (*this)(w.time_conv, Tiles::kNo);
  }

  /// Norms are computed in float32.
  void flatten(Tensor& norm) const { norm = own(norm.flatten(), at::kFloat); }

 private:
  /// Always a copy: a view of one small tensor would keep the whole file mapped.
  static Tensor own(const Tensor& t, at::ScalarType dtype) {
    return t.to(dtype, /*non_blocking=*/false, /*copy=*/true);
  }

  at::ScalarType dtype_;
};

}  // namespace

void prepare_encoder(Weights& weights, at::ScalarType dtype) {
  Encoder& e = weights.encoder;
  if (e.conv_in.form != Conv::Form::kLoaded) return;
  const Preparation prepared(dtype);
  prepared(e.conv_in, Tiles::kYes);
  for (EncoderLevel& level : e.levels) {
    const bool latent = &level == &e.levels.back();
    for (ResidualBlock& block : level.resnets) prepared(block, latent ? Tiles::kNo : Tiles::kYes);
    prepared(level.downsampler, /*up=*/false);
  }
  prepared(e.mid);
  prepared.flatten(e.norm_out);
  prepared(e.conv_out, Tiles::kNo);
  prepared(weights.quant);
}

void prepare_decoder(Weights& weights, at::ScalarType dtype) {
  Decoder& d = weights.decoder;
  if (d.conv_in.form != Conv::Form::kLoaded) return;
  const Preparation prepared(dtype);
  prepared(weights.post_quant);
  prepared(d.conv_in, Tiles::kNo);
  prepared(d.mid);
  for (DecoderLevel& level : d.levels) {
    const bool latent = &level == &d.levels.front();
    for (ResidualBlock& block : level.resnets) prepared(block, latent ? Tiles::kNo : Tiles::kYes);
    prepared(level.upsampler, /*up=*/true);
  }
  prepared.flatten(d.norm_out);
  prepared(d.conv_out, d.levels.size() > 1 ? Tiles::kYes : Tiles::kNo);
}

}  // namespace orrery::wan_vae
