#include "orrery/weights/lora_key.h"

#include <algorithm>
#include <optional>

#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

struct Word {
  std::string_view text;
  LoraRole role;
};
constexpr Word kFactors[] = {
    {".lora_A", LoraRole::kDown},
    {".lora_B", LoraRole::kUp},
    {".lora_down", LoraRole::kDown},
    {".lora_up", LoraRole::kUp},
    {".lora.down", LoraRole::kDown},
    {".lora.up", LoraRole::kUp},
    {".lora_linear_layer.down", LoraRole::kDown},
    {".lora_linear_layer.up", LoraRole::kUp},
};
constexpr std::string_view kWeight = ".weight", kAlpha = ".alpha";

// Adapters that are more or other than two factors. Leaving their tensors out would change the picture in
// silence.
struct Other {
  std::string_view part, kind;
};
constexpr Other kOthers[] = {
    {".dora_scale", "DoRA"},
    {".lora_magnitude_vector", "DoRA"},
    {".lokr_", "LoKr"},
    {".hada_", "LoHa"},
    {".oft_", "OFT"},
    {".lora_mid", "a Tucker core"},
    {".lora_B.bias", "LoRA with biases"},
    {".lora_up.bias", "LoRA with biases"},
    {".base_layer.", "a whole checkpoint with its adapters apart"},
};

// Of peft, diffusers, ComfyUI, NVIDIA's programs; of kohya's and OneTrainer's.
constexpr std::string_view kPrefixes[] = {
    "base_model.model.", "transformer.",      "diffusion_model.", "model.", "net.",
    "lora_unet_",        "lora_transformer_",
};

/// "" or ".default": the name of an adapter has no dots.
bool names_an_adapter(std::string_view rest) {
  return rest.empty() || (rest.size() > 1 && rest[0] == '.' && rest.find('.', 1) == rest.npos);
}

std::optional<LoraKey> factor(std::string_view key) {
  if (!key.ends_with(kWeight)) return {};
  key.remove_suffix(kWeight.size());
  for (const auto& word : kFactors) {
    const size_t at = key.rfind(word.text);
    if (at != key.npos && at > 0 && names_an_adapter(key.substr(at + word.text.size())))
      return LoraKey{std::string(key.substr(0, at)), word.role};
  }
  return {};
}

}  // namespace

LoraKey parse_lora_key(std::string_view key, const std::string& path) {
  for (const auto& other : kOthers)
    if (key.find(other.part) != key.npos)
      refuse(Fault::kUnsupported, path, ": ", shown(key), " belongs to ", other.kind,
             "; expected plain LoRA, two factors for each module");
  if (key.ends_with(".diff") || key.ends_with(".diff_b"))
    refuse(Fault::kUnsupported, path, ": ", shown(key),
           " is a full difference of weights; expected plain LoRA");
  if (auto found = factor(key)) return *found;
  if (key.ends_with(kAlpha) && key.size() > kAlpha.size())
    return {std::string(key.substr(0, key.size() - kAlpha.size())), LoraRole::kAlpha};
  refuse(Fault::kUnknownKey, path, ": ", shown(key),
         " is no key of a LoRA; expected MODULE.lora_A.weight and MODULE.lora_B.weight, or ",
         "MODULE.lora_down.weight, MODULE.lora_up.weight and MODULE.alpha");
}

std::string_view bare_module(std::string_view module) {
  for (bool more = true; more;) {
    more = false;
    for (std::string_view prefix : kPrefixes)
      if (module.starts_with(prefix)) module.remove_prefix(prefix.size()), more = true;
  }
  return module;
}

std::string flattened(std::string_view module) {
  std::string out(module);
  std::ranges::replace(out, '.', '_');
  return out;
}

}  // namespace orrery::weights
