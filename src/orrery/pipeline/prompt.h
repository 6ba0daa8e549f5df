#pragma once
#include <functional>

#include "orrery/models/qwen_vl/text_encoder.h"
#include "orrery/pipeline/cosmos_checkpoint.h"

namespace orrery::pipeline {

/// The guidance branches that this process evaluates.
struct Branches {
  bool positive = true, negative = true;
};

/// The text of a request, embedded: [L, C] each; undefined where its branch is not evaluated here.
struct PromptEmbeds {
  Tensor positive, negative;
};

using EncodePrompt = std::function<qwen_vl::EncodedPrompt(const std::string& prompt)>;

/// Embeds prompt and negative prompt, as far as `wanted`, or takes the embeddings that the request brings
/// (safetensors, tensor `prompt_embeds` or the only one, [L, width] or [1, L, width]). Says how many tokens
/// were cut off. Errors of `encode`, and of kind request for embeddings of another width.
PromptEmbeds embed_prompts(const Checkpoint& checkpoint, const config::Request& request, Branches wanted,
                           int64_t width, const EncodePrompt& encode);

/// The same for the Cosmos families, whose text encoder is opened by the first prompt that needs it and
/// released again. Uses all cores of the calling thread. Errors of open_text_encoder.
PromptEmbeds embed_prompts(const CosmosCheckpoint& checkpoint, const config::Request& request,
                           Branches wanted);

/// The checkpoint's text encoder, its weights mapped. Error of kind checkpoint if it has none.
qwen_vl::TextEncoder open_text_encoder(const Checkpoint& checkpoint);

/// The embeddings in a file, [tokens, width] or [1, tokens, width], as [tokens, width] in `dtype`. Errors as
/// read_tensor, and of kind request for another shape.
Tensor read_embeds(const std::string& path, const std::string& name, int64_t width, at::ScalarType dtype);

/// A safetensors file's tensor of that name, or its only one. Errors of kind request name the file and what
/// it holds.
Tensor read_tensor(const std::string& path, const std::string& name);

}  // namespace orrery::pipeline
