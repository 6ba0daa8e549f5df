// Fields: diffusers, models/transformers/transformer_cosmos.py (58eb52c); official values: spec
// cosmos-predict2.5 §2.1, §3.3; image context: cosmos-transfer2.5 §2.3.
#include "orrery/models/cosmos/config.h"

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/models/json_config.h"

namespace orrery::cosmos {
namespace {

void check(const TransformerConfig& c, const std::string& path) {
  const auto positive = [&](int64_t value, const char* name) {
    if (value < 1 || value > (int64_t{1} << 24))
      fail(ErrorKind::kCheckpoint, path, ": ", name, " is ", value, "; expected a positive count");
  };
  positive(c.latent_channels, "in_channels"), positive(c.heads, "num_attention_heads"),
      positive(c.layers, "num_layers");
  positive(c.adaln_rank, "adaln_lora_dim"), positive(c.text_width, "text_embed_dim"),
      positive(c.patch, "patch_size");
  positive(c.text_input_width, "crossattn_proj_in_channels"), positive(c.mlp_width(), "mlp_ratio x width");
  if (c.image_input_width != 0)
    positive(c.image_input_width, "img_context_dim_in"), positive(c.image_width, "img_context_dim_out");
  if (c.head_dim < 6 || c.head_dim % 2 != 0)
    fail(ErrorKind::kCheckpoint, path, ": attention_head_dim is ", c.head_dim,
         "; expected an even number of at least 6");
}

}  // namespace

TransformerConfig read_transformer_config(const std::string& path) {
  const JsonConfig json(path);
  TransformerConfig c;
  c.latent_channels = json.get("in_channels", c.latent_channels + 1) - 1;
  c.padding_mask = json.get("concat_padding_mask", c.padding_mask);
  c.heads = json.get("num_attention_heads", c.heads);
  c.head_dim = json.get("attention_head_dim", c.head_dim);
  c.layers = json.get("num_layers", c.layers);
  c.mlp_ratio = json.get("mlp_ratio", c.mlp_ratio);
  c.adaln_rank = json.get("adaln_lora_dim", c.adaln_rank);
  c.text_width = json.get("text_embed_dim", c.text_width);
  c.text_projection = json.get("use_crossattn_projection", false);
  c.text_input_width =
      c.text_projection ? json.get("crossattn_proj_in_channels", c.text_input_width) : c.text_width;
  c.image_input_width = json.get("img_context_dim_in", c.image_input_width);
  if (c.image_input_width != 0) c.image_width = json.get("img_context_dim_out", int64_t{2048});
  c.max_size = json.get("max_size", c.max_size);
  c.rope_ratio = json.get("rope_scale", c.rope_ratio);
  const auto patch = json.get("patch_size", std::array<int64_t, 3>{1, 2, 2});
  c.patch = patch[1];
  if (patch[0] != 1 || patch[1] != patch[2])
    fail(ErrorKind::kUnsupported, path, ": patch_size is ", patch[0], ",", patch[1], ",", patch[2],
         "; expected 1,p,p");
  if (json.get("out_channels", c.latent_channels) != c.latent_channels)
    fail(ErrorKind::kUnsupported, path, ": out_channels differs from in_channels − 1 = ", c.latent_channels);
  if (!json.get("extra_pos_embed_type", std::string()).empty())
    fail(ErrorKind::kUnsupported, path, ": extra_pos_embed_type is set; Cosmos-Predict2.5 has none");
  check(c, path);
  return c;
}

TransformerConfig infer_transformer_config(const std::map<std::string, Tensor>& tensors) {
  const auto size = [&](const std::string& name, int64_t dim) {
    const auto found = tensors.find(name);
    if (found == tensors.end() || found->second.dim() <= dim)
      throw Error(ErrorKind::kCheckpoint,
                  concat("the transformer's tensors lack ", name, ", from which its size follows"),
                  "missing_key");
    return found->second.size(dim);
  };
  TransformerConfig c;
  c.head_dim = size("transformer_blocks.0.attn1.norm_q.weight", 0);
  const int64_t width = size("patch_embed.proj.weight", 0);
  if (c.head_dim < 1 || width % c.head_dim != 0)
    fail(ErrorKind::kCheckpoint, "width ", width, " is no multiple of the head width ", c.head_dim);
  c.heads = width / c.head_dim;
  c.layers = 0;
  while (tensors.contains(concat("transformer_blocks.", c.layers, ".attn1.to_q.weight"))) ++c.layers;
  c.latent_channels = size("proj_out.weight", 0) / (c.patch * c.patch);
  c.padding_mask = size("patch_embed.proj.weight", 1) == (c.latent_channels + 2) * c.patch * c.patch;
  c.adaln_rank = size("transformer_blocks.0.norm1.linear_1.weight", 0);
  c.mlp_ratio =
      static_cast<double>(size("transformer_blocks.0.ff.net.0.proj.weight", 0)) / static_cast<double>(width);
  c.text_width = size("transformer_blocks.0.attn2.to_k.weight", 1);
  c.text_projection = tensors.contains("crossattn_proj.0.weight");
  c.text_input_width = c.text_projection ? size("crossattn_proj.0.weight", 1) : c.text_width;
  if (tensors.contains("img_context_proj.0.weight")) {
    c.image_width = size("img_context_proj.0.weight", 0);
    c.image_input_width = size("img_context_proj.0.weight", 1);
  }
  check(c, "the transformer's tensors");
  return c;
}

}  // namespace orrery::cosmos
