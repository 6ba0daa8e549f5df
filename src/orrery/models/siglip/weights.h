#pragma once
// The tensors of the vision tower, named as in transformers' Siglip2VisionModel below "vision_model."; its
// pooling head is not bound (spec cosmos-transfer2.5 §2.4).
#include "orrery/models/siglip/config.h"
#include "orrery/nn/linear.h"

namespace orrery::siglip {

struct LayerNorm {
  Tensor weight, bias;  // [E]
};

struct Attention {
  nn::Linear q, k, v, out;
};

struct Layer {
  LayerNorm attention_norm, mlp_norm;
  Attention attention;
  nn::Linear up, down;
};

struct Weights {
  nn::Linear patches;
  Tensor positions;  // [table_side², E], row by row
  std::vector<Layer> layers;
  LayerNorm norm;
};

template <class B>
void bind(B& b, LayerNorm& w, const Config& c) {
  b("weight", w.weight, Shape{c.width});
  b("bias", w.bias, Shape{c.width});
}

template <class B>
void bind(B& b, Attention& w, const Config& c) {
  b("q_proj", w.q, c.width, c.width, nn::Bias::kYes);
  b("k_proj", w.k, c.width, c.width, nn::Bias::kYes);
  b("v_proj", w.v, c.width, c.width, nn::Bias::kYes);
  b("out_proj", w.out, c.width, c.width, nn::Bias::kYes);
}

template <class B>
void bind(B& b, Layer& w, const Config& c) {
  b("layer_norm1", w.attention_norm, c);
  b("self_attn", w.attention, c);
  b("layer_norm2", w.mlp_norm, c);
  b("mlp.fc1", w.up, c.mlp_width, c.width, nn::Bias::kYes);
  b("mlp.fc2", w.down, c.width, c.mlp_width, nn::Bias::kYes);
}

template <class B>
void bind(B& b, Weights& w, const Config& c) {
  b("embeddings.patch_embedding", w.patches, c.width, c.patch_features(), nn::Bias::kYes);
  b("embeddings.position_embedding.weight", w.positions, Shape{c.table_side * c.table_side, c.width});
  b.list("encoder.layers", w.layers, c.layers, c);
  b("post_layernorm", w.norm, c);
}

}  // namespace orrery::siglip
