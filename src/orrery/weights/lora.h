#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::weights {

/// One module's part of a LoRA file.
struct LoraModule {
  std::string name;  // as the file spells it, prefixes included
  Tensor down, up;   // [r, in], [out, r], as stored
  double scale = 1;  // alpha / r; 1 if the file gives no alpha
};

struct Lora {
  std::string path;  // of the file
  std::vector<LoraModule> modules;
};

/// The LoRA in `path`: a .safetensors, or a folder that holds pytorch_lora_weights.safetensors,
/// adapter_model.safetensors (peft), or exactly one other .safetensors. Keys in every format of
/// spec qwen-image §12.2; tensors are views of the mapped file. The scale comes from the module's alpha, else
/// from the metadata lora_adapter_metadata, else from an adapter_config.json beside an
/// adapter_model.safetensors. Errors: those of open_safetensors and parse_lora_key; unsupported for a .pt,
/// .pth, .bin or .ckpt; missing_file; missing_key (a module without one of its halves, a file without LoRA);
/// invalid_shape (factors that are no matrices, of rank 0 or of two ranks); invalid_tensor (an alpha that is
/// no finite number, factors of integers); duplicate_key (several adapters in one file); invalid_header (the
/// configuration).
Lora open_lora(const std::string& path);

struct LoraChoice {
  std::string path;
  double strength = 1;
};

/// "PATH", "PATH:STRENGTH" or "PATH=STRENGTH": what stands behind the last colon or equals sign is a strength
/// if it is a number, else part of the path. Error of kind request: no path, a strength that is not finite.
LoraChoice parse_lora_choice(std::string_view text);

}  // namespace orrery::weights
