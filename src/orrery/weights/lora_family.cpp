#include "orrery/weights/lora_family.h"

#include <algorithm>

#include "orrery/weights/lora_key.h"

namespace orrery::weights {
namespace {

struct Family {
  std::string_view name;
  std::string_view parts[6];  // of flattened names: one is enough
};

// The first row with a match counts, so what several families share comes last. Native FLUX and HunyuanVideo
// have Qwen-Image's img_mod within blocks of other names; U-Nets have Cosmos' attn1 within theirs.
constexpr Family kFamilies[] = {
    {"Stable Diffusion or SDXL (a U-Net)",
     {"down_blocks_", "up_blocks_", "mid_block_", "input_blocks_", "middle_block_", "output_blocks_"}},
    {"FLUX or HunyuanVideo", {"double_blocks_", "single_blocks_", "single_transformer_blocks_"}},
    {"Stable Diffusion 3", {"joint_blocks_", "ff_context_"}},
    {"Qwen-Image", {"img_mlp_", "txt_mlp_", "img_mod_", "txt_mod_"}},
    {"Cosmos-Predict2.5", {"self_attn_q_proj", "self_attn_output_proj", "mlp_layer1", "adaln_modulation_"}},
    {"Wan", {"self_attn_", "cross_attn_", "ffn_"}},
    {"Z-Image or Lumina", {"noise_refiner_", "context_refiner_", "attention_to_"}},
    {"Cosmos-Predict2.5, Wan or LTX-Video in diffusers names", {"attn1_", "attn2_"}},
    {"Qwen-Image, FLUX or Stable Diffusion 3 in diffusers names", {"attn_to_", "attn_add_"}},
    {"a text encoder, which takes no LoRA here", {"text_encoder", "text_model_", "lora_te"}},
};

bool matches(const Family& family, const std::string& flat) {
  return std::ranges::any_of(
      family.parts, [&](std::string_view part) { return !part.empty() && flat.find(part) != flat.npos; });
}

}  // namespace

std::string_view family_of(std::span<const std::string> modules) {
  for (const auto& family : kFamilies)
    for (const auto& module : modules)
      if (matches(family, flattened(module))) return family.name;
  return {};
}

}  // namespace orrery::weights
