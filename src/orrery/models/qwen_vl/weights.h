#pragma once
// The text decoder's tensors, named as in transformers' Qwen2.5-VL below the prefix of the language model
// ("model." in the first releases, "model.language_model." since); lm_head is not bound (spec qwen2.5-vl-text
// §6). The vision tower's are in vision_weights.h.
#include "orrery/models/qwen_vl/config.h"
#include "orrery/models/qwen_vl/mlp.h"

namespace orrery::qwen_vl {

struct Attention {
  nn::Linear q, k, v, o;
};

struct Layer {
  Tensor attention_norm, mlp_norm;  // [E]
  Attention attention;
  Mlp mlp;
};

struct TextWeights {
  Tensor embedding;  // [vocabulary, E]
  std::vector<Layer> layers;
  Tensor norm;  // [E]
};

template <class B>
void bind(B& b, Attention& w, const TextConfig& c) {
  const int64_t keys = c.kv_heads * c.head_dim, queries = c.heads * c.head_dim;
  b("q_proj", w.q, queries, c.hidden_size, nn::Bias::kYes);
  b("k_proj", w.k, keys, c.hidden_size, nn::Bias::kYes);
  b("v_proj", w.v, keys, c.hidden_size, nn::Bias::kYes);
  b("o_proj", w.o, c.hidden_size, queries);
}

template <class B>
void bind(B& b, Layer& w, const TextConfig& c) {
  b("input_layernorm.weight", w.attention_norm, Shape{c.hidden_size});
  b("self_attn", w.attention, c);
  b("post_attention_layernorm.weight", w.mlp_norm, Shape{c.hidden_size});
  b("mlp", w.mlp, c.hidden_size, c.intermediate_size);
}

template <class B>
void bind(B& b, TextWeights& w, const TextConfig& c) {
  b("embed_tokens.weight", w.embedding, Shape{c.vocab_size, c.hidden_size});
  b.list("layers", w.layers, c.layers, c);
  b("norm.weight", w.norm, Shape{c.hidden_size});
}

}  // namespace orrery::qwen_vl
