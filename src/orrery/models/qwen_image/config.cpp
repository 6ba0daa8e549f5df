// Fields: diffusers, models/transformers/transformer_qwenimage.py (58eb52c).
#include "orrery/models/qwen_image/config.h"

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"

namespace orrery::qwen_image {
namespace {

void check(const TransformerConfig& c, const std::string& path) {
  const auto positive = [&](int64_t value, const char* name, int64_t most = int64_t{1} << 24) {
    if (value < 1 || value > most)
      fail(ErrorKind::kCheckpoint, path, ": ", name, " is ", value, "; expected 1 to ", most);
  };
  positive(c.latent_channels, "out_channels"), positive(c.patch, "patch_size", 256),
      positive(c.layers, "num_layers");
  positive(c.heads, "num_attention_heads"), positive(c.head_dim, "attention_head_dim");
  positive(c.width(), "num_attention_heads x attention_head_dim"),
      positive(c.text_width, "joint_attention_dim");
  positive(c.token_channels(), "out_channels x patch_size²");
  int64_t rotated = 0;
  for (const int64_t axis : c.rope_axes) {
    positive(axis, "an entry of axes_dims_rope");
    if (axis % 2 != 0)
      fail(ErrorKind::kCheckpoint, path, ": axes_dims_rope has ", axis, "; expected even widths");
    rotated += axis;
  }
  if (rotated != c.head_dim)
    fail(ErrorKind::kCheckpoint, path, ": axes_dims_rope are ", rotated,
         " together; expected attention_head_dim = ", c.head_dim);
}

void refuse_variants(const JsonConfig& json, const TransformerConfig& c) {
  json.refuse(json.get("guidance_embeds", false),
              "guidance_embeds = true: orrery runs undistilled Qwen-Image only");
  json.refuse(json.get("use_additional_t_cond", false),
              "use_additional_t_cond = true belongs to Qwen-Image-Layered");
  json.refuse(json.get("use_layer3d_rope", false), "use_layer3d_rope = true belongs to Qwen-Image-Layered");
  json.refuse(json.get("in_channels", c.token_channels()) != c.token_channels(),
              "in_channels differs from out_channels x patch_size²");
}

}  // namespace

TransformerConfig read_transformer_config(const std::string& path) {
  const JsonConfig json(path);
  TransformerConfig c;
  c.latent_channels = json.get("out_channels", c.latent_channels);
  c.patch = json.get("patch_size", c.patch);
  c.heads = json.get("num_attention_heads", c.heads);
  c.head_dim = json.get("attention_head_dim", c.head_dim);
  c.layers = json.get("num_layers", c.layers);
  c.text_width = json.get("joint_attention_dim", c.text_width);
  c.rope_axes = json.get("axes_dims_rope", c.rope_axes);
  c.zero_cond_t = json.get("zero_cond_t", c.zero_cond_t);
  check(c, path);
  refuse_variants(json, c);
  return c;
}

}  // namespace orrery::qwen_image
