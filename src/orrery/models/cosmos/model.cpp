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
#include "orrery/ops/attention.h"
#include "orrery/ops/modulate.h"
#include "orrery/ops/rms_norm.h"
#include "orrery/ops/silu_mul.h"
#include "orrery/parallel/attention.h"

namespace orrery::cosmos {
namespace {

using nn::linear;
using ops::Activation;

constexpr double kNormEps = 1e-6;  // layer norms and the norm of the time embedding (spec §2.1, §2.2)

Tensor heads(const Tensor& x, int64_t head_dim) { return x.unflatten(-1, {-1, head_dim}); }

/// [R, count·E] → shift, scale and, if there are three, gate.
Step::Rows rows(const Tensor& modulation, int64_t count) {
  const auto parts = modulation.chunk(count, 1);
  return {parts[0].contiguous(), parts[1].contiguous(), count == 3 ? parts[2].contiguous() : Tensor()};
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

Prepared Transformer::prepare(const Grid& grid, const Tensor& embeds) const {
  require(embeds.dim() == 2 && embeds.size(1) == config_.text_input_width, "text embeddings are ",
          embeds.sizes(), "; this model takes [tokens, ", config_.text_input_width, "]");
  auto text = embeds.to(dtype());
  if (config_.text_projection) text = linear(weights_.text_projection, text, Activation::kGelu);
  Prepared p{{}, grid.tokens()};
  for (const auto& block : weights_.blocks) {
    const auto k = heads(linear(block.attn2.k, text), config_.head_dim);
    p.cross.push_back({ops::rms_norm(k, block.attn2.norm_k, config_.qk_norm_eps),
                       heads(linear(block.attn2.v, text), config_.head_dim)});
  }
  return p;
}

Step Transformer::step(const std::vector<float>& times) const {
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
  Step step;
  const auto modulated = [&](const nn::Modulation& m) {
    return rows(nn::modulation(m, conditioning) + lora, 3);
  };
  for (const auto& block : weights_.blocks)
    step.blocks.push_back({modulated(block.norm1), modulated(block.norm2), modulated(block.norm3)});
  step.final =
      rows(nn::modulation(weights_.norm_out, conditioning) + lora.narrow(1, 0, 2 * config_.width()), 2);
  step.row_of_frame = at::tensor(row_of_frame, at::kInt);
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
  const auto& w = weights_.blocks[static_cast<size_t>(i)];
  const auto& [self, cross, mlp] = step.blocks[static_cast<size_t>(i)];
  const auto& text = prepared.cross[static_cast<size_t>(i)];
  const auto split_heads = [&](const Tensor& x) { return heads(x, config_.head_dim); };

  auto h = ops::layer_norm_modulate(s.x, self.shift, self.scale, s.row, kNormEps);
  auto q = ops::rms_norm_rope(split_heads(linear(w.attn1.q, h)), w.attn1.norm_q, s.rope, config_.qk_norm_eps);
  auto k = ops::rms_norm_rope(split_heads(linear(w.attn1.k, h)), w.attn1.norm_k, s.rope, config_.qk_norm_eps);
  auto v = split_heads(linear(w.attn1.v, h));
  auto y = parallel::attention(ctx, q, k, v, prepared.sequence_length);
  ops::add_gated_(s.x, self.gate, linear(w.attn1.out, y.flatten(1)), s.row);

  h = ops::layer_norm_modulate(s.x, cross.shift, cross.scale, s.row, kNormEps);
  q = ops::rms_norm(split_heads(linear(w.attn2.q, h)), w.attn2.norm_q, config_.qk_norm_eps);
  y = ops::attention(q, text.k, text.v);
  ops::add_gated_(s.x, cross.gate, linear(w.attn2.out, y.flatten(1)), s.row);

  h = ops::layer_norm_modulate(s.x, mlp.shift, mlp.scale, s.row, kNormEps);
  y = linear(w.down, linear(w.up, h, Activation::kGelu));
  ops::add_gated_(s.x, mlp.gate, y, s.row);
}

Tensor Transformer::unembed(const parallel::Context&, const Step& step, const Stream& s) const {
  const auto h =
      ops::layer_norm_modulate(s.x.to(at::kFloat), step.final.shift, step.final.scale, s.row, kNormEps);
  return linear(weights_.proj_out, h);
}

}  // namespace orrery::cosmos
