// Spec cosmos-predict2.5 §2. Origin: nvidia-cosmos/cosmos-predict2.5 50369b8,
// _src/predict2/networks/minimal_v4_dit.py and minimal_v1_lvg_dit.py; DiT blocks with adaptive layer norm:
// Peebles & Xie 2022.
#include "orrery/models/cosmos/model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "orrery/base/error.h"
#include "orrery/nn/patchify.h"
#include "orrery/nn/rope.h"
#include "orrery/nn/timestep.h"
#include "orrery/ops/modulate.h"
#include "orrery/ops/rms_norm.h"
#include "orrery/ops/silu_mul.h"

namespace orrery::cosmos {
namespace {

using nn::linear;
using ops::Activation;

/// Zeros mean the same as no features, and make all image tokens equal: attention over any number of equal
/// keys gives what it gives over one (spec cosmos-transfer2.5 §2.3).
Tensor image_rows(const TransformerConfig& c, const Tensor& features, at::ScalarType dtype) {
  if (features.defined() && features.any().item<bool>()) return features.to(dtype);
  return at::zeros({1, c.image_input_width}, dtype);
}

}  // namespace

Grid Transformer::grid(int64_t frames, int64_t height, int64_t width) const {
  const int64_t p = config_.patch;
  ensure(height % p == 0 && width % p == 0, "latents of ", height, "x", width,
         " do not divide into patches of ", p);
  Grid g{frames, height / p, width / p, {}, {}};
  g.rope = nn::video_rope({config_.head_dim, config_.rope_ratio, config_.bf16_rope_exponents}, g.frames,
                          g.rows, g.columns);
  g.frame = at::arange(frames, at::kInt).repeat_interleave(g.rows * g.columns);
  return g;
}

Prompt Transformer::prompt(const Tensor& embeds, const Tensor& image_features) const {
  require(embeds.dim() == 2 && embeds.size(1) == config_.text_input_width, "text embeddings are ",
          embeds.sizes(), "; this model takes [tokens, ", config_.text_input_width, "]");
  Prompt p{embeds.to(dtype()), {}};
  if (config_.text_projection) p.text = linear(weights_.text_projection, p.text, Activation::kGelu);
  if (config_.image_width == 0) {
    require(!image_features.defined(), "image features are given, but this model has no image context");
    return p;
  }
  require(!image_features.defined() || (image_features.dim() == 2 && image_features.size(0) > 0 &&
                                        image_features.size(1) == config_.image_input_width),
          "image features are ", image_features.defined() ? image_features.sizes() : at::IntArrayRef(),
          "; this model takes [tokens, ", config_.image_input_width, "]");
  p.image =
      linear(weights_.image_projection, image_rows(config_, image_features, dtype()), Activation::kGelu);
  return p;
}

Prepared Transformer::prepare(const Grid& grid, const Prompt& prompt) const {
  Prepared p{{}, grid.tokens()};
  for (const auto& block : weights_.blocks) p.cross.push_back(cross_attention(block, config_, prompt));
  return p;
}

Time Transformer::time(const std::vector<float>& times) const {
  std::vector<float> distinct;
  std::vector<int32_t> row_of_frame;
  for (const float t : times) {
    const auto found = std::find(distinct.begin(), distinct.end(), t);
    row_of_frame.push_back(static_cast<int32_t>(found - distinct.begin()));
    if (found == distinct.end()) distinct.push_back(t);
  }
  // Everything here is float32, whatever the compute dtype (spec §2.6): R is 1 or 2, so it costs nothing.
  const auto& w = weights_.time_embed;
  const auto sinusoid = nn::timestep_embedding(at::tensor(distinct), config_.width());
  const auto lora = linear(w.linear_2, linear(w.linear_1, sinusoid, Activation::kSilu));
  const auto conditioning = ops::silu(ops::rms_norm(sinusoid, w.norm, kNormEps));
  return {conditioning, lora, at::tensor(row_of_frame, at::kInt)};
}

Step Transformer::step(const Time& time) const {
  Step step;
  for (const auto& block : weights_.blocks) step.blocks.push_back(block_rows(block, time));
  step.final = split_rows(
      nn::modulation(weights_.norm_out, time.conditioning) + time.lora.narrow(1, 0, 2 * config_.width()), 2);
  step.row_of_frame = time.row_of_frame;
  return step;
}

parallel::Tokens Transformer::tokens(const Grid& grid, const Tensor& latents, int64_t given) const {
  const auto extra = at::zeros(
      {config_.padding_mask ? 2 : 1, latents.size(1), latents.size(2), latents.size(3)}, latents.options());
  extra.narrow(0, 0, 1)
      .narrow(1, 0, given)
      .fill_(1);  // the condition mask; the padding mask is zero at inference
  return {nn::patchify(at::cat(std::vector<Tensor>{latents, extra}, 0), config_.patch).to(dtype()), grid.rope,
          grid.frame};
}

Tensor Transformer::velocity(const Grid& grid, const Tensor& tokens) const {
  return nn::unpatchify(tokens, config_.patch, grid.frames, grid.rows, grid.columns);
}

Stream Transformer::embed(const parallel::Context&, const Prepared&, const Step& step,
                          const parallel::Tokens& tokens) const {
  return {linear(weights_.patch_embed, tokens.values), tokens.rope,
          step.row_of_frame.index_select(0, tokens.frame)};
}

void Transformer::block(const parallel::Context& ctx, const Prepared& prepared, const Step& step, int64_t i,
                        Stream& s) const {
  const auto at = static_cast<size_t>(i);
  cosmos::block(ctx, config_, weights_.blocks[at], prepared.cross[at], step.blocks[at],
                prepared.sequence_length, s);
}

Tensor Transformer::unembed(const parallel::Context&, const Step& step, const Stream& s) const {
  const auto h =
      ops::layer_norm_modulate(s.x.to(at::kFloat), step.final.shift, step.final.scale, s.row, kNormEps);
  return linear(weights_.proj_out, h);
}

}  // namespace orrery::cosmos
