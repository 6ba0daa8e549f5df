#pragma once
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "orrery/nn/bind.h"

namespace orrery::cosmos {

/// What a Cosmos-Predict2.5 transformer is: the fields of diffusers' CosmosTransformer3DModel with the 2 B
/// values, and the two choices of arithmetic in which the references differ inside the network (spec
/// cosmos-predict2.5 §2.1, §2.7).
struct TransformerConfig {
  int64_t latent_channels =
      16;  // the network also sees the condition mask and, if padding_mask, one channel of zeros
  bool padding_mask = true;
  int64_t heads = 16, head_dim = 128, layers = 28;
  double mlp_ratio = 4;
  int64_t adaln_rank = 256;
  int64_t text_width = 1024;          // what cross-attention sees
  int64_t text_input_width = 100352;  // what the text encoder gives
  bool text_projection = true;
  int64_t image_width = 0;        // the image context, as cross-attention sees it; 0: there is none
  int64_t image_input_width = 0;  // what the image encoder gives
  std::array<int64_t, 3> max_size = {128, 240, 240};  // latent frames, rows, columns
  int64_t patch = 2;
  std::array<double, 3> rope_ratio = {1, 3, 3};  // frame, row, column

  double qk_norm_eps = 1e-6;
  bool bf16_rope_exponents = true;

  int64_t width() const { return heads * head_dim; }
  int64_t mlp_width() const { return static_cast<int64_t>(static_cast<double>(width()) * mlp_ratio); }
  int64_t patch_inputs() const { return (latent_channels + 1 + (padding_mask ? 1 : 0)) * patch * patch; }
};

/// transformer/config.json of the diffusers layout. Error of kind checkpoint for a missing or impossible
/// field, of kind unsupported for a variant that this model is not (learned position embeddings).
TransformerConfig read_transformer_config(const std::string& path);

/// The configuration that tensors of the official layout imply (they come without a file): widths and counts
/// from the shapes of `tensors` under their diffusers names, everything else as published.
TransformerConfig infer_transformer_config(const std::map<std::string, Tensor>& tensors);

}  // namespace orrery::cosmos
