#pragma once
// The vision tower's tensors, named as in transformers' Qwen2.5-VL below "visual." (spec qwen2.5-vl-text
// §7.3).
#include "orrery/models/qwen_vl/config.h"
#include "orrery/models/qwen_vl/mlp.h"

namespace orrery::qwen_vl {

struct VisionAttention {
  nn::Linear qkv, proj;
};

struct VisionBlock {
  Tensor attention_norm, mlp_norm;  // [E]
  VisionAttention attention;
  Mlp mlp;
};

struct Merger {
  Tensor norm;  // [E]
  nn::Linear hidden, out;
};

struct VisionWeights {
  Tensor patch_embedding;  // [E, 3, T, p, p]
  std::vector<VisionBlock> blocks;
  Merger merger;
};

template <class B>
void bind(B& b, VisionAttention& w, const VisionConfig& c) {
  b("qkv", w.qkv, 3 * c.hidden_size, c.hidden_size, nn::Bias::kYes);
  b("proj", w.proj, c.hidden_size, c.hidden_size, nn::Bias::kYes);
}

template <class B>
void bind(B& b, VisionBlock& w, const VisionConfig& c) {
  b("norm1.weight", w.attention_norm, Shape{c.hidden_size});
  b("attn", w.attention, c);
  b("norm2.weight", w.mlp_norm, Shape{c.hidden_size});
  b("mlp", w.mlp, c.hidden_size, c.intermediate_size, nn::Bias::kYes);
}

template <class B>
void bind(B& b, Merger& w, const VisionConfig& c) {
  const int64_t width = c.merge_size * c.merge_size * c.hidden_size;
  b("ln_q.weight", w.norm, Shape{c.hidden_size});
  b("mlp.0", w.hidden, width, width, nn::Bias::kYes);
  b("mlp.2", w.out, c.out_hidden_size, width, nn::Bias::kYes);
}

template <class B>
void bind(B& b, VisionWeights& w, const VisionConfig& c) {
  b("patch_embed.proj.weight", w.patch_embedding,
    Shape{c.hidden_size, 3, c.temporal_patch_size, c.patch_size, c.patch_size});
  b.list("blocks", w.blocks, c.depth, c);
  b("merger", w.merger, c);
}

}  // namespace orrery::qwen_vl
