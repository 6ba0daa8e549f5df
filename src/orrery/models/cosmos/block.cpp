// Spec cosmos-predict2.5 §2.3, cosmos-transfer2.5 §2.3. Origin: nvidia-cosmos/cosmos-predict2.5 50369b8,
// _src/predict2/networks/minimal_v4_dit.py; DiT blocks with adaptive layer norm: Peebles & Xie 2022.
#include "orrery/models/cosmos/block.h"

#include "orrery/ops/attention.h"
#include "orrery/ops/modulate.h"
#include "orrery/ops/rms_norm.h"
#include "orrery/parallel/attention.h"

namespace orrery::cosmos {
namespace {

using nn::linear;
using ops::Activation;

// Of the image's queries and keys, in both references.
constexpr double kImageNormEps = 1e-6;

Tensor heads(const Tensor& x, int64_t head_dim) { return x.unflatten(-1, {-1, head_dim}); }

/// What the image adds to the text's attention, before their common output layer: [S_r, E], or [1, E] for
/// every query. Over a single key the softmax is 1, so queries and keys need not be computed.
Tensor image_attention(const ImageAttention& w, const TransformerConfig& c, const CrossAttention& cross,
                       const Tensor& h) {
  if (!cross.image_k.defined()) return cross.image_v.flatten(1);
  const auto q = ops::rms_norm(heads(linear(w.q, h), c.head_dim), w.norm_q, kImageNormEps);
  return ops::attention(q, cross.image_k, cross.image_v).flatten(1);
}

}  // namespace

Rows split_rows(const Tensor& modulation, int64_t count) {
  const auto parts = modulation.chunk(count, 1);
  return {parts[0].contiguous(), parts[1].contiguous(), count == 3 ? parts[2].contiguous() : Tensor()};
}

CrossAttention cross_attention(const Block& w, const TransformerConfig& c, const Prompt& prompt) {
  const auto split_heads = [&](const Tensor& x) { return heads(x, c.head_dim); };
  CrossAttention cross;
  cross.k = ops::rms_norm(split_heads(linear(w.attn2.k, prompt.text)), w.attn2.norm_k, c.qk_norm_eps);
  cross.v = split_heads(linear(w.attn2.v, prompt.text));
  if (!prompt.image.defined()) return cross;
  cross.image_v = split_heads(linear(w.image.v, prompt.image));
  if (prompt.image.size(0) > 1)
    cross.image_k =
        ops::rms_norm(split_heads(linear(w.image.k, prompt.image)), w.image.norm_k, kImageNormEps);
  return cross;
}

BlockRows block_rows(const Block& w, const Time& time) {
  const auto modulated = [&](const nn::Modulation& m) {
    return split_rows(nn::modulation(m, time.conditioning) + time.lora, 3);
  };
  return {modulated(w.norm1), modulated(w.norm2), modulated(w.norm3)};
}

void block(const parallel::Context& ctx, const TransformerConfig& c, const Block& w,
           const CrossAttention& context, const BlockRows& rows, int64_t sequence_length, Stream& s) {
  const auto& [self, cross, mlp] = rows;
  const auto split_heads = [&](const Tensor& x) { return heads(x, c.head_dim); };

  auto h = ops::layer_norm_modulate(s.x, self.shift, self.scale, s.row, kNormEps);
  auto q = ops::rms_norm_rope(split_heads(linear(w.attn1.q, h)), w.attn1.norm_q, s.rope, c.qk_norm_eps);
  auto k = ops::rms_norm_rope(split_heads(linear(w.attn1.k, h)), w.attn1.norm_k, s.rope, c.qk_norm_eps);
  auto v = split_heads(linear(w.attn1.v, h));
  auto y = parallel::attention(ctx, q, k, v, sequence_length);
  ops::add_gated_(s.x, self.gate, linear(w.attn1.out, y.flatten(1)), s.row);

  h = ops::layer_norm_modulate(s.x, cross.shift, cross.scale, s.row, kNormEps);
  q = ops::rms_norm(split_heads(linear(w.attn2.q, h)), w.attn2.norm_q, c.qk_norm_eps);
  y = ops::attention(q, context.k, context.v).flatten(1);
  if (context.image_v.defined()) y = y + image_attention(w.image, c, context, h);
  ops::add_gated_(s.x, cross.gate, linear(w.attn2.out, y), s.row);

  h = ops::layer_norm_modulate(s.x, mlp.shift, mlp.scale, s.row, kNormEps);
  y = linear(w.down, linear(w.up, h, Activation::kGelu));
  ops::add_gated_(s.x, mlp.gate, y, s.row);
}

}  // namespace orrery::cosmos
