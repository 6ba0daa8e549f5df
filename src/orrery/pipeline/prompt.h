#pragma once
#include "orrery/pipeline/predict_model.h"

namespace orrery::pipeline {

/// The guidance branches that this process evaluates.
struct Branches {
  bool positive = true, negative = true;
};

/// The text of a request, embedded: [L, layers · width] each; undefined where its branch is not evaluated
/// here.
struct PromptEmbeds {
  Tensor positive, negative;
};

/// Embeds prompt and negative prompt, as far as `wanted`, or takes the embeddings that the request brings
/// (safetensors, tensor `prompt_embeds` or the only one, [L, C] or [1, L, C]). The text encoder is opened
/// here and released again. Says how many tokens were cut off. Uses all cores of the calling thread. Errors:
/// request (embeddings of another width), checkpoint (no text encoder).
PromptEmbeds embed_prompts(const PredictModel& model, const config::Request& request, Branches wanted);

/// A safetensors file's tensor of that name, or its only one. Errors of kind request name the file and what
/// it holds.
Tensor read_tensor(const std::string& path, const std::string& name);

}  // namespace orrery::pipeline
