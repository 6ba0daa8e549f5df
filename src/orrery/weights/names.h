#pragma once
#include <string>
#include <string_view>

#include "orrery/weights/tensor_map.h"

namespace orrery::weights {

// One network is published under several spellings. These functions give its tensors the one spelling that
// `bind` knows; tensors move, nothing is copied, and a map that is spelled so already comes back as it is. A
// name that no rule knows stays as it is, for the Loader to refuse. Error: duplicate_key if two tensors come
// to bear one name.

/// Whose names a checkpoint bears.
enum class Naming { kOfficial, kDiffusers };

/// Cosmos DiT: the official names unless one of the keys is diffusers' own (transformer_blocks.,
/// patch_embed., …).
Naming cosmos_naming(const TensorMap& tensors);

/// Cosmos-Predict2.5 and Transfer2.5 DiT to diffusers names (spec cosmos-predict2.5 §3.2, cosmos-transfer2.5
/// §2.9), a control branch to those of cosmos_control_names. `net.` is stripped; where a
/// training checkpoint also has `net_ema.`, those are taken instead, everything else is dropped, and a
/// warning is logged. Entries without weights
/// (_extra_state, counters, position buffers; §3.1) are dropped.
TensorMap cosmos_names(TensorMap tensors);

/// The control branch of a Cosmos-Transfer2.5 checkpoint, without anything else: `control_embedder.proj.…`
/// and `control_blocks.#.…` with diffusers' names behind that. Takes an official file, which holds the base,
/// too, or diffusers' CosmosControlNetModel, which calls the embedder patch_embed and repeats parts of the
/// base.
TensorMap cosmos_control_names(TensorMap tensors);

/// What released official files call the tensor that diffusers calls `name`: for messages.
std::string official_cosmos_name(std::string_view name);

/// Wan VAE (tokenizer.pth, Wan2.1_VAE.pth) to diffusers names (spec cosmos-predict2.5 §8.5).
Naming wan_vae_naming(const TensorMap& tensors);
TensorMap wan_vae_names(TensorMap tensors);

/// Qwen2.5-VL, any layout (spec qwen2.5-vl-text §6), to `embed_tokens.weight`, `layers.{i}.…`, `norm.weight`
/// and `visual.…`. lm_head and rotary_emb.inv_freq are dropped.
TensorMap qwen_vl_names(TensorMap tensors);

/// Qwen-Image transformer: single files put everything below `model.diffusion_model.` (spec qwen-image §3).
TensorMap qwen_image_names(TensorMap tensors);

}  // namespace orrery::weights
