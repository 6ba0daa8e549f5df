#pragma once
#include <cstdint>
#include <string>

namespace orrery::qwen_vl {

/// What the text decoder of a Qwen2.5-VL checkpoint is (spec qwen2.5-vl-text §1).
struct TextConfig {
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0;
  int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double rms_norm_eps = 1e-5;  // transformers' default; published files say 1e-6
  double rope_theta = 1e6;
};

/// text_encoder/config.json, with the text fields at top level (first releases), in `text_config`, or in both
/// (then the inner ones count). Error of kind checkpoint, naming the field, for missing or impossible ones;
/// unsupported for another activation, a scaled rotation or sliding windows.
TextConfig read_text_config(const std::string& path);

}  // namespace orrery::qwen_vl
