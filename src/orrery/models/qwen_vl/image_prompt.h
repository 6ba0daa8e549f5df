#pragma once
// What Qwen-Image and its editing models condition on (spec qwen-image §8).
#include "orrery/models/qwen_vl/text_encoder.h"

namespace orrery::qwen_vl {

/// The conversation in which a prompt is embedded.
enum class PromptTemplate {
  kText,      // Qwen-Image: no picture
  kEdit,      // Qwen-Image-Edit: one picture, before the prompt
  kEditPlus,  // Edit-2509 and later: one picture or more, each behind "Picture k: "
};

/// The prompt in its template, a placeholder for each picture. Error of kind request for a number of pictures
/// that the template has no place for.
std::string render_image_prompt(PromptTemplate kind, std::string_view prompt, int64_t images);

/// The tokens with each `image_token` as often as its picture has rows (`grids`: of EncodedImage). Error of
/// kind request unless there is one for each picture: a prompt may contain the placeholder too.
std::vector<int32_t> expand_placeholders(std::span<const int32_t> tokens, int64_t image_token,
                                         std::span<const Grid> grids);

/// Ids of a prompt from the template's start on.
struct ImagePromptIds {
  std::vector<int32_t> ids;
  int64_t prefix = 0;             // how many of them are dropped after encoding
  int64_t kept = 0, dropped = 0;  // tokens behind the prefix: among the ids, and behind the cut
};

/// At most `max_tokens` are kept behind the prefix with kText (512 by default in the reference), the
/// template's end included; prompts with pictures are never cut. Tokens are counted, not searched: where the
/// prompt begins with a newline that merges with the template's, its first token goes with the prefix, as in
/// the reference. Errors of Tokenizer::encode, render_image_prompt and expand_placeholders; request if
/// max_tokens < 1.
ImagePromptIds image_prompt_ids(const tokenizer::Tokenizer& tokenizer, int64_t image_token,
                                std::string_view prompt, std::span<const Grid> grids, PromptTemplate kind,
                                int64_t max_tokens);

/// The last hidden state of image_prompt_ids without the prefix: [kept, E] in `dtype`. Errors of
/// image_prompt_ids and text_input.
EncodedPrompt encode_image_prompt(const TextEncoder& encoder, std::string_view prompt,
                                  std::span<const EncodedImage> images, PromptTemplate kind,
                                  int64_t max_tokens, at::ScalarType dtype);

}  // namespace orrery::qwen_vl
