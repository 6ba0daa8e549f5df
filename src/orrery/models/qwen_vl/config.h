#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::qwen_vl {

/// What the text decoder of a Qwen2.5-VL checkpoint is (spec qwen2.5-vl-text §1).
struct TextConfig {
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0;
  int64_t layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double rms_norm_eps = 1e-5;  // transformers' default; published files say 1e-6
  double rope_theta = 1e6;
  // For texts with pictures: how many of the D/2 frequencies turn with the time, the row and the column of a
  // token ("mrope_section"; zeros where the file has none), and the id that stands for a piece of a picture.
  std::array<int64_t, 3> rope_sections = {};
  int64_t image_token = 151655;
};

/// What its vision tower is (spec §7.1). Initial values are transformers' defaults.
struct VisionConfig {
  int64_t depth = 32, hidden_size = 3584, intermediate_size = 3420, heads = 16, out_hidden_size = 3584;
  int64_t patch_size = 14, temporal_patch_size = 2;
  int64_t merge_size = 2;     // merge_size × merge_size patches become one row for the text decoder
  int64_t window_size = 112;  // side, in pixels, of the square to which a block's attention is confined …
  std::vector<int64_t> full_attention_blocks = {7, 15, 23, 31};  // … except in these

  int64_t patch_features() const { return 3 * temporal_patch_size * patch_size * patch_size; }
  /// Side of a window in merged patches.
  int64_t window_groups() const { return window_size / merge_size / patch_size; }
};

/// text_encoder/config.json, with the text fields at top level (first releases), in `text_config`, or in both
/// (then the inner ones count). Error of kind checkpoint, naming the field, for missing or impossible ones;
/// unsupported for another activation, a scaled rotation or sliding windows.
TextConfig read_text_config(const std::string& path);

/// `vision_config` of the same file. Errors alike; unsupported for pictures without three channels.
VisionConfig read_vision_config(const std::string& path);

}  // namespace orrery::qwen_vl
