#include "orrery/pipeline/prompt.h"

#include <ATen/ops/isfinite.h>

#include <optional>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/models/qwen_vl/text_encoder.h"
#include "orrery/weights/safetensors.h"

namespace orrery::pipeline {
namespace {

Tensor read_embeds(const PredictModel& model, const std::string& path, const std::string& name) {
  Tensor embeds = read_tensor(path, name);
  if (embeds.dim() == 3 && embeds.size(0) == 1) embeds = embeds[0];
  require(embeds.dim() == 2 && embeds.size(0) > 0 && embeds.size(1) == model.config.text_input_width, path,
          ": expected ", name, " of [tokens, ", model.config.text_input_width, "], found ", embeds.sizes());
  return embeds.to(model.dtype);
}

/// Opened by the first prompt that needs it, closed with this object.
class Encoder {
 public:
  /// length: tokens wanted; if not set, what published checkpoints use, or less if the tokenizer's file says
  /// so.
  Encoder(const PredictModel& model, std::optional<int64_t> length) : model_(model), wanted_length_(length) {}

  Tensor operator()(const std::string& prompt, const char* what) {
    if (!encoder_) open();
    auto encoded = qwen_vl::encode_cosmos_prompt(*encoder_, prompt, length_, model_.dtype);
    if (encoded.dropped > 0)
      log::warn("the ", what, " is too long: ", encoded.kept, " tokens are used, ", encoded.dropped,
                " are cut off");
    return encoded.embeddings;
  }

 private:
  void open() {
    const auto& layout = model_.layout;
    if (layout.text_encoder.empty() || layout.tokenizer.empty())
      throw Error(ErrorKind::kCheckpoint,
                  "this checkpoint has no text encoder beside it: name one with --text-encoder, or give "
                  "--prompt-embeds",
                  "missing_file");
    // A prompt is encoded once: widening 7 B parameters for it would cost more than it saves.
    encoder_ = qwen_vl::open_text_encoder(layout.text_encoder, layout.tokenizer, model_.dtype,
                                          weights::Storage::kMapped);
    if (encoder_->config.layers * encoder_->config.hidden_size != model_.config.text_input_width)
      fail(ErrorKind::kCheckpoint, layout.text_encoder, ": ", encoder_->config.layers, " layers of width ",
           encoder_->config.hidden_size, " do not give the ", model_.config.text_input_width,
           " features that the transformer takes");
    // The file's limit counts where it is small: published files give the language model's own, 131072.
    const int64_t longest = encoder_->tokenizer.model_max_length().value_or(kPublishedLength);
    length_ = wanted_length_.value_or(std::min(kPublishedLength, longest));
  }

  static constexpr int64_t kPublishedLength = 512;

  const PredictModel& model_;
  std::optional<int64_t> wanted_length_;
  std::optional<qwen_vl::TextEncoder> encoder_;
  int64_t length_ = 0;
};

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

PromptEmbeds embed_prompts(const PredictModel& model, const config::Request& request, Branches wanted) {
  Encoder encode(model, request.max_sequence_length);
  const auto embed = [&](const auto& embeds, const auto& prompt, const char* name, const char* what) {
    return embeds ? read_embeds(model, *embeds, name) : encode(prompt.value(), what);
  };
  PromptEmbeds out;
  if (wanted.positive) out.positive = embed(request.prompt_embeds, request.prompt, "prompt_embeds", "prompt");
  if (wanted.negative)
    out.negative = embed(request.negative_prompt_embeds, request.negative_prompt, "negative_prompt_embeds",
                         "negative prompt");
  return out;
}

}  // namespace orrery::pipeline
