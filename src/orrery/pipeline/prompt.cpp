#include "orrery/pipeline/prompt.h"

#include <ATen/ops/isfinite.h>

#include <optional>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/weights/safetensors.h"

namespace orrery::pipeline {
namespace {

// Of published Cosmos checkpoints; a tokenizer's own limit counts where it is smaller (published files give
// the language model's, 131072).
constexpr int64_t kCosmosLength = 512;

}  // namespace

Tensor read_tensor(const std::string& path, const std::string& name) {
  weights::TensorMap tensors;
  try {
    tensors = weights::open_safetensors(path);
  } catch (const Error& e) {
    throw Error(ErrorKind::kRequest, e.message(), e.code());
  }
  auto found = tensors.find(name);
  if (found == tensors.end() && tensors.size() == 1) found = tensors.begin();
  require(found != tensors.end(), path, ": expected a tensor `", name, "`, found ", tensors.size(),
          " others");
  require(at::isFloatingType(found->second.scalar_type()), path, ": `", name, "` is ",
          found->second.scalar_type(), "; expected floating point");
  require(at::isfinite(found->second).all().item<bool>(), path, ": `", name,
          "` holds values that are not finite");
  return found->second;
}

Tensor read_embeds(const std::string& path, const std::string& name, int64_t width, at::ScalarType dtype) {
  Tensor embeds = read_tensor(path, name);
  if (embeds.dim() == 3 && embeds.size(0) == 1) embeds = embeds[0];
  require(embeds.dim() == 2 && embeds.size(0) > 0 && embeds.size(1) == width, path, ": expected ", name,
          " of [tokens, ", width, "], found ", embeds.sizes());
  return embeds.to(dtype);
}

qwen_vl::TextEncoder open_text_encoder(const Checkpoint& c) {
  if (c.layout.text_encoder.empty() || c.layout.tokenizer.empty())
    throw Error(ErrorKind::kCheckpoint,
                "this checkpoint has no text encoder beside it: name one with --text-encoder, or give "
                "--prompt-embeds",
                "missing_file");
  // A prompt is encoded once: widening 7 B parameters for it would cost more than it saves.
  return qwen_vl::open_text_encoder(c.layout.text_encoder, c.layout.tokenizer, c.dtype,
                                    weights::Storage::kMapped);
}

PromptEmbeds embed_prompts(const Checkpoint& c, const config::Request& request, Branches wanted,
                           int64_t width, const EncodePrompt& encode) {
  const auto embed = [&](const auto& embeds, const auto& prompt, const char* name, const char* what) {
    if (embeds) return read_embeds(*embeds, name, width, c.dtype);
    const auto encoded = encode(prompt.value());
    if (encoded.dropped > 0)
      log::warn("the ", what, " is too long: ", encoded.kept, " tokens are used, ", encoded.dropped,
                " are cut off");
    return encoded.embeddings;
  };
  PromptEmbeds out;
  if (wanted.positive) out.positive = embed(request.prompt_embeds, request.prompt, "prompt_embeds", "prompt");
  if (wanted.negative)
    out.negative = embed(request.negative_prompt_embeds, request.negative_prompt, "negative_prompt_embeds",
                         "negative prompt");
  return out;
}

PromptEmbeds embed_prompts(const CosmosCheckpoint& m, const config::Request& request, Branches wanted) {
  const int64_t width = m.text_input_width;
  std::optional<qwen_vl::TextEncoder> encoder;
  return embed_prompts(m, request, wanted, width, [&](const std::string& prompt) {
    if (!encoder) {
      encoder = open_text_encoder(m);
      const auto& c = encoder->config;
      if (c.layers * c.hidden_size != width)
        fail(ErrorKind::kCheckpoint, m.layout.text_encoder, ": ", c.layers, " layers of width ",
             c.hidden_size, " do not give the ", width, " features that the transformer takes");
    }
    const int64_t longest = encoder->tokenizer.model_max_length().value_or(kCosmosLength);
    const int64_t length = request.max_sequence_length.value_or(std::min(kCosmosLength, longest));
    return qwen_vl::encode_cosmos_prompt(*encoder, prompt, length, m.dtype);
  });
}

}  // namespace orrery::pipeline
