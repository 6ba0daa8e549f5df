// huggingface/transformers, models/qwen2_5_vl/modeling_qwen2_5_vl.py (Qwen2_5_VLTextModel); full_concat:
// nvidia-cosmos/cosmos-predict2.5 50369b8d, the text encoder's wrapper. Spec qwen2.5-vl-text Part A.
#include "orrery/models/qwen_vl/text_model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>

#include "orrery/base/error.h"
#include "orrery/ops/attention.h"
#include "orrery/ops/rms_norm.h"
#include "orrery/ops/silu_mul.h"

namespace orrery::qwen_vl {
namespace {

/// [S, D]: cosines, then sines of position · θ^(−2j/D). Three equal position rows make mRoPE this plain
/// rotation.
Tensor rope_table(const TextConfig& c, int64_t length) {
  const auto exponents = at::arange(0, c.head_dim, 2, at::kFloat) / static_cast<double>(c.head_dim);
  const auto frequencies = 1.0 / at::pow(at::Scalar(c.rope_theta), exponents);
  const auto angles = at::arange(length, at::kFloat).unsqueeze(1) * frequencies;
  return at::cat({angles.cos(), angles.sin()}, 1);
}

Tensor embed(const Tensor& table, std::span<const int32_t> ids, at::ScalarType dtype) {
  require(!ids.empty(), "the text has no tokens");
  auto index = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= 0 && ids[i] < table.size(0), "token ", ids[i], " is not among the encoder's ",
            table.size(0));
    index.data_ptr<int64_t>()[i] = ids[i];
  }
  return table.index_select(0, index.to(table.device())).to(dtype);
}

Tensor attention(const Attention& w, const TextConfig& c, const Tensor& x, const Tensor& rope) {
  const auto heads = [&](const nn::Linear& to) { return nn::linear(to, x).unflatten(-1, {-1, c.head_dim}); };
  const auto q = ops::rms_norm_rope(heads(w.q), {}, rope, 0);
  const auto k = ops::rms_norm_rope(heads(w.k), {}, rope, 0);
  return nn::linear(w.o, ops::attention(q, k, heads(w.v), 0, /*causal=*/true).flatten(1));
}

Tensor mlp(const Mlp& w, const Tensor& x) {
  return nn::linear(w.down, ops::silu_mul(nn::linear(w.gate, x), nn::linear(w.up, x)));
}

}  // namespace

void run_text(const TextWeights& weights, const TextConfig& c, std::span<const int32_t> ids,
              at::ScalarType dtype, const HiddenStates& each) {
  auto h = embed(weights.embedding, ids, dtype);
  const auto rope = rope_table(c, h.size(0)).to(h.device());
  each(0, h);
  for (int64_t i = 1; i <= c.layers; ++i) {
    const Layer& w = weights.layers[static_cast<size_t>(i - 1)];
    h = h + attention(w.attention, c, ops::rms_norm(h, w.attention_norm, c.rms_norm_eps), rope);
    h = h + mlp(w.mlp, ops::rms_norm(h, w.mlp_norm, c.rms_norm_eps));
    if (i < c.layers) each(i, h);
  }
  each(c.layers, ops::rms_norm(h, weights.norm, c.rms_norm_eps));
}

Tensor cosmos_embeddings(const TextWeights& weights, const TextConfig& c, std::span<const int32_t> ids,
                         at::ScalarType dtype) {
  const auto length = static_cast<int64_t>(ids.size());
  auto out = at::empty({length, c.layers * c.hidden_size}, weights.embedding.options().dtype(dtype));
  run_text(weights, c, ids, dtype, [&](int64_t i, const Tensor& h) {
    if (i == 0) return;
    const auto mean = h.mean(-1, /*keepdim=*/true);
    const auto deviation = h.std(-1, /*unbiased=*/true, /*keepdim=*/true);
    out.narrow(1, (i - 1) * c.hidden_size, c.hidden_size).copy_((h - mean) / (deviation + 1e-8));
  });
  return out;
}

}  // namespace orrery::qwen_vl
