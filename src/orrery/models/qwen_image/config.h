#pragma once
#include <string>

#include "orrery/nn/rope.h"

namespace orrery::qwen_image {

/// What a Qwen-Image transformer is: the fields of diffusers' QwenImageTransformer2DModel with the published
/// values (spec qwen-image §2.1).
struct TransformerConfig {
  int64_t latent_channels = 16, patch = 2;
  int64_t heads = 24, head_dim = 128, layers = 60;
  int64_t text_width = 3584;
  nn::RopeAxes rope_axes = {16, 56, 56};
  bool zero_cond_t = false;  // given pictures are modulated as if clean, at time 0 (Edit-2511; spec §2.9)

  int64_t width() const { return heads * head_dim; }
  int64_t mlp_width() const { return 4 * width(); }
  int64_t token_channels() const { return latent_channels * patch * patch; }
};

/// transformer/config.json of the diffusers layout. Error of kind checkpoint for an impossible field, of kind
/// unsupported for a variant that this model is not (distilled guidance, layers).
TransformerConfig read_transformer_config(const std::string& path);

}  // namespace orrery::qwen_image
