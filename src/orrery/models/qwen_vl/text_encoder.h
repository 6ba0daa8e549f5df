#pragma once
#include <string_view>

#include "orrery/models/qwen_vl/text_model.h"
#include "orrery/models/tokenizer/tokenizer.h"
#include "orrery/weights/visitors.h"

namespace orrery::qwen_vl {

/// A checkpoint's text encoder with its tokenizer. Const and safe to share between threads.
struct TextEncoder {
  TextConfig config;
  TextWeights weights;
  tokenizer::Tokenizer tokenizer;
};

/// Reads config.json and weights of `folder` (any layout of spec qwen2.5-vl-text §6; lm_head and vision tower
/// are not read) and the tokenizer's folder. Errors of read_text_config, Tokenizer::open and the Loader; kind
/// checkpoint if the tokenizer has ids without a row.
TextEncoder open_text_encoder(const std::string& folder, const std::string& tokenizer_folder,
                              at::ScalarType compute, weights::Storage storage);

/// Ids of exactly the wanted length: cut, or filled up on the right with the tokenizer's pad id.
struct PromptIds {
  std::vector<int32_t> ids;
  int64_t kept = 0;     // tokens of the prompt with its chat template
  int64_t dropped = 0;  // tokens behind the cut
};

/// A prompt as Cosmos-Predict2.5 tokenises it (spec cosmos-predict2.5 §4.2): in its chat template, `length`
/// ids in all. The model attends to pads as to other tokens, so the length matters. Errors of
/// Tokenizer::encode; request if length < 1.
PromptIds cosmos_prompt_ids(const tokenizer::Tokenizer& tokenizer, std::string_view prompt, int64_t length);

struct EncodedPrompt {
  Tensor embeddings;  // one row per token, in the dtype asked for
  int64_t kept = 0, dropped = 0;
};

/// cosmos_embeddings of cosmos_prompt_ids: [length, L·E]. Published checkpoints use 512 tokens.
EncodedPrompt encode_cosmos_prompt(const TextEncoder& encoder, std::string_view prompt, int64_t length,
                                   at::ScalarType dtype);

}  // namespace orrery::qwen_vl
