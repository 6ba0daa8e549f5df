#pragma once
// Names of diffusers' QwenImageTransformer2DModel (spec qwen-image §3).
#include "orrery/models/qwen_image/config.h"
#include "orrery/nn/linear.h"

namespace orrery::qwen_image {

constexpr int64_t kTimeChannels = 256;  // of the sinusoid (spec §2.3)

/// A block's weights for one of its two streams.
struct Side {
  nn::Linear modulation;
  nn::Linear q, k, v, out;
  Tensor norm_q, norm_k;
  nn::Linear up, down;
};

struct Block {
  Side text, image;
};

struct TimeEmbed {
  nn::Linear linear_1, linear_2;
};

struct TransformerWeights {
  nn::Linear image_in;
  Tensor text_norm;
  nn::Linear text_in;
  TimeEmbed time_embed;
  std::vector<Block> blocks;
  nn::Linear norm_out, proj_out;
};

struct SideNames {
  const char *modulation, *q, *k, *v, *out, *norm_q, *norm_k, *up, *down;
};

constexpr SideNames kImageNames = {"img_mod.1",          "attn.to_q",          "attn.to_k",
                                   "attn.to_v",          "attn.to_out.0",      "attn.norm_q.weight",
                                   "attn.norm_k.weight", "img_mlp.net.0.proj", "img_mlp.net.2"};

constexpr SideNames kTextNames = {
    "txt_mod.1",       "attn.add_q_proj",          "attn.add_k_proj",          "attn.add_v_proj",
    "attn.to_add_out", "attn.norm_added_q.weight", "attn.norm_added_k.weight", "txt_mlp.net.0.proj",
    "txt_mlp.net.2"};

template <class B>
void bind_side(B& b, Side& w, const SideNames& names, const TransformerConfig& c) {
  const auto linear = [&](const char* name, nn::Linear& l, int64_t out, int64_t in) {
    b(name, l, out, in, nn::Bias::kYes);
  };
  linear(names.modulation, w.modulation, 6 * c.width(), c.width());
  linear(names.q, w.q, c.width(), c.width());
  linear(names.k, w.k, c.width(), c.width());
  linear(names.v, w.v, c.width(), c.width());
  linear(names.out, w.out, c.width(), c.width());
  b(names.norm_q, w.norm_q, Shape{c.head_dim});
  b(names.norm_k, w.norm_k, Shape{c.head_dim});
  linear(names.up, w.up, c.mlp_width(), c.width());
  linear(names.down, w.down, c.width(), c.mlp_width());
}

template <class B>
void bind(B& b, Block& w, const TransformerConfig& c) {
  bind_side(b, w.text, kTextNames, c);
  bind_side(b, w.image, kImageNames, c);
}

template <class B>
void bind(B& b, TimeEmbed& w, const TransformerConfig& c) {
  b("linear_1", w.linear_1, c.width(), kTimeChannels, nn::Bias::kYes);
  b("linear_2", w.linear_2, c.width(), c.width(), nn::Bias::kYes);
}

template <class B>
void bind(B& b, TransformerWeights& w, const TransformerConfig& c) {
  b("img_in", w.image_in, c.width(), c.token_channels(), nn::Bias::kYes);
  b("txt_norm.weight", w.text_norm, Shape{c.text_width});
  b("txt_in", w.text_in, c.width(), c.text_width, nn::Bias::kYes);
  b("time_text_embed.timestep_embedder", w.time_embed, c);
  b.list("transformer_blocks", w.blocks, c.layers, c);
  b("norm_out.linear", w.norm_out, 2 * c.width(), c.width(), nn::Bias::kYes);
  b("proj_out", w.proj_out, c.token_channels(), c.width(), nn::Bias::kYes);
}

}  // namespace orrery::qwen_image
