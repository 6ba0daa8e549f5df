#pragma once
#include <string>

#include "orrery/weights/tensor_map.h"

namespace orrery::weights {

/// The tensors at `path`, under the names that the file gives them (names.h maps them):
/// a .safetensors; a NAME.safetensors.index.json with its shards; a .pt, .pth or .bin of torch.save; or a
/// folder that holds one of diffusion_pytorch_model.safetensors and model.safetensors (whole or sharded),
/// else exactly one .safetensors, else exactly one .pt or .pth. Errors: missing_file with what was looked
/// for; unsupported for other file names; those of safetensors.h and torch_file.h.
TensorMap open_weights(const std::string& path);

}  // namespace orrery::weights
