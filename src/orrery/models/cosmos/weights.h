#pragma once
// Names of diffusers' CosmosTransformer3DModel; official names are mapped to them in weights/names.h (spec
// cosmos-predict2.5 §3.2, cosmos-transfer2.5 §2.9).
#include "orrery/models/cosmos/config.h"
#include "orrery/nn/linear.h"
#include "orrery/nn/modulation.h"

namespace orrery::cosmos {

struct Attention {
  nn::Linear q, k, v, out;
  Tensor norm_q, norm_k;
};

/// A second cross-attention beside the text's, to a picture; both share the output layer.
struct ImageAttention {
  nn::Linear q, k, v;
  Tensor norm_q, norm_k;
};

struct Block {
  nn::Modulation norm1, norm2, norm3;  // before self-attention, cross-attention, MLP
  Attention attn1, attn2;              // self, cross
  ImageAttention image;                // if the model has image context
  nn::Linear up, down;
};

struct TimeEmbed {
  nn::Linear linear_1, linear_2;
  Tensor norm;
};

struct TransformerWeights {
  nn::Linear patch_embed;
  TimeEmbed time_embed;
  nn::Linear text_projection, image_projection;
  std::vector<Block> blocks;
  nn::Modulation norm_out;
  nn::Linear proj_out;
};

template <class B>
void bind(B& b, Attention& w, const TransformerConfig& c, int64_t context_width) {
  b("to_q", w.q, c.width(), c.width());
  b("to_k", w.k, c.width(), context_width);
  b("to_v", w.v, c.width(), context_width);
  b("to_out.0", w.out, c.width(), c.width());
  b("norm_q.weight", w.norm_q, Shape{c.head_dim});
  b("norm_k.weight", w.norm_k, Shape{c.head_dim});
}

template <class B>
void bind(B& b, ImageAttention& w, const TransformerConfig& c) {
  b("q_img", w.q, c.width(), c.width());
  b("k_img", w.k, c.width(), c.image_width);
  b("v_img", w.v, c.width(), c.image_width);
  b("q_img_norm.weight", w.norm_q, Shape{c.head_dim});
  b("k_img_norm.weight", w.norm_k, Shape{c.head_dim});
}

template <class B>
void bind(B& b, Block& w, const TransformerConfig& c) {
  b("norm1", w.norm1, 3 * c.width(), c.adaln_rank, c.width());
  b("attn1", w.attn1, c, c.width());
  b("norm2", w.norm2, 3 * c.width(), c.adaln_rank, c.width());
  b("attn2", w.attn2, c, c.text_width);
  if (c.image_width > 0) b("attn2", w.image, c);
  b("norm3", w.norm3, 3 * c.width(), c.adaln_rank, c.width());
  b("ff.net.0.proj", w.up, c.mlp_width(), c.width());
  b("ff.net.2", w.down, c.width(), c.mlp_width());
}

template <class B>
void bind(B& b, TimeEmbed& w, const TransformerConfig& c) {
  b("t_embedder.linear_1", w.linear_1, c.width(), c.width());
  b("t_embedder.linear_2", w.linear_2, 3 * c.width(), c.width());
  b("norm.weight", w.norm, Shape{c.width()});
}

template <class B>
void bind(B& b, TransformerWeights& w, const TransformerConfig& c) {
  b("patch_embed.proj", w.patch_embed, c.width(), c.patch_inputs());
  b("time_embed", w.time_embed, c);
  if (c.text_projection)
    b("crossattn_proj.0", w.text_projection, c.text_width, c.text_input_width, nn::Bias::kYes);
  if (c.image_width > 0)
    b("img_context_proj.0", w.image_projection, c.image_width, c.image_input_width, nn::Bias::kYes);
  b.list("transformer_blocks", w.blocks, c.layers, c);
  b("norm_out", w.norm_out, 2 * c.width(), c.adaln_rank, c.width());
  b("proj_out", w.proj_out, c.patch * c.patch * c.latent_channels, c.width());
}

}  // namespace orrery::cosmos
