#pragma once
#include <string>
#include <string_view>

namespace orrery::weights {

/// What a tensor of a LoRA file is: ΔW = strength · (alpha / rank) · up · down.
enum class LoraRole { kDown, kUp, kAlpha };

/// A key of a LoRA file (spec qwen-image §12.2), taken apart.
struct LoraKey {
  std::string
      module;  // as the file spells it: dotted, or flattened with underscores behind lora_unet_ (kohya)
  LoraRole role;
};

/// Takes apart M.lora_A.weight and M.lora_B.weight, M.lora_down.weight and M.lora_up.weight, diffusers' older
/// M.lora.down.weight and M.lora_linear_layer.down.weight, each also with the name of an adapter before
/// .weight (lora_A.default.weight), and M.alpha. `path` is for messages. Errors: unsupported for other
/// adapters (DoRA, LoKr, LoHa, …), which it names; unknown_key for anything else.
LoraKey parse_lora_key(std::string_view key, const std::string& path);

/// A module's name without the prefixes that programs put before it (transformer., diffusion_model.,
/// lora_unet_, …): what is left is the model's own name, dotted or flattened.
std::string_view bare_module(std::string_view module);

/// Dots turned into underscores, as kohya's programs do.
std::string flattened(std::string_view module);

}  // namespace orrery::weights
