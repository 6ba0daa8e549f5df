// huggingface/diffusers 58eb52c0, pipelines/qwenimage/pipeline_qwenimage.py, pipeline_qwenimage_edit.py and
// pipeline_qwenimage_edit_plus.py (templates, _get_qwen_prompt_embeds).
#include "orrery/models/qwen_vl/image_prompt.h"

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/models/tokenizer/chat_template.h"

namespace orrery::qwen_vl {
namespace {

using tokenizer::ChatPart;

constexpr std::string_view kDescribe =
    "Describe the image by detailing the color, shape, size, texture, quantity, text, spatial relationships "
    "of "
    "the objects and background:";
constexpr std::string_view kAlter =
    "Describe the key features of the input image (color, shape, size, texture, objects, background), then "
    "explain how the user's text instruction should alter or modify the image. Generate a new image that "
    "meets "
    "the user's requirements while maintaining consistency with the original input where appropriate.";

// Tokens of the template up to the user's turn, in the published vocabulary ("drop_idx").
constexpr int64_t kDescribePrefix = 34, kAlterPrefix = 64;

}  // namespace

std::string render_image_prompt(PromptTemplate kind, std::string_view prompt, int64_t images) {
  require(kind != PromptTemplate::kText || images == 0, "this model takes no picture, ", images, " given");
  require(kind != PromptTemplate::kEdit || images == 1, "this model edits one picture, ", images, " given");
  require(kind != PromptTemplate::kEditPlus || images >= 1, "this model edits pictures, none given");
  std::vector<ChatPart> user(static_cast<size_t>(images), {ChatPart::Kind::kImage, {}});
  user.push_back({ChatPart::Kind::kText, std::string(prompt)});
  const std::string_view system = kind == PromptTemplate::kText ? kDescribe : kAlter;
  const tokenizer::ChatMessage messages[] = {{"system", {{.text = std::string(system)}}}, {"user", user}};
  return render_chat(messages,
                     {.add_generation_prompt = true, .add_vision_id = kind == PromptTemplate::kEditPlus});
}

std::vector<int32_t> expand_placeholders(std::span<const int32_t> tokens, int64_t image_token,
                                         std::span<const Grid> grids) {
  const auto places = std::ranges::count(tokens, image_token);
  require(places == std::ssize(grids), "the text has ", places, " places for pictures (<|image_pad|>), ",
          grids.size(), " given");
  std::vector<int32_t> ids;
  auto grid = grids.begin();
  for (const int32_t id : tokens)
    ids.insert(ids.end(), static_cast<size_t>(id == image_token ? (grid++)->count() : 1), id);
  return ids;
}

ImagePromptIds image_prompt_ids(const tokenizer::Tokenizer& tokenizer, int64_t image_token,
                                std::string_view prompt, std::span<const Grid> grids, PromptTemplate kind,
                                int64_t max_tokens) {
  require(max_tokens >= 1, "the text length is ", max_tokens, "; expected at least 1 token");
  const bool text_only = kind == PromptTemplate::kText;
  ImagePromptIds out;
  out.ids = tokenizer.encode(render_image_prompt(kind, prompt, std::ssize(grids)));
  // Without pictures the placeholder is a token like others.
  if (!text_only) out.ids = expand_placeholders(out.ids, image_token, grids);
  out.prefix = text_only ? kDescribePrefix : kAlterPrefix;
  const int64_t behind = std::ssize(out.ids) - out.prefix;
  if (behind < 1)
    fail(ErrorKind::kCheckpoint, "the tokenizer makes ", out.ids.size(),
         " tokens of a prompt in its template; expected more than ", out.prefix);
  out.kept = text_only ? std::min(behind, max_tokens) : behind;
  out.dropped = behind - out.kept;
  out.ids.resize(static_cast<size_t>(out.prefix + out.kept));
  return out;
}

EncodedPrompt encode_image_prompt(const TextEncoder& encoder, std::string_view prompt,
                                  std::span<const EncodedImage> images, PromptTemplate kind,
                                  int64_t max_tokens, at::ScalarType dtype) {
  const TextConfig& c = encoder.config;
  const auto placeholder = encoder.tokenizer.encode("<|image_pad|>");
  if (!images.empty() && (placeholder.size() != 1 || placeholder[0] != c.image_token))
    fail(ErrorKind::kCheckpoint, "the text encoder's image_token_id is ", c.image_token,
         ", which is not the tokenizer's <|image_pad|>");
  std::vector<Grid> grids;
  for (const EncodedImage& image : images) grids.push_back(image.grid);
  const auto ids = image_prompt_ids(encoder.tokenizer, c.image_token, prompt, grids, kind, max_tokens);
  const auto input = text_input(encoder.weights, c, ids.ids, images, dtype);
  return {last_hidden_state(encoder.weights, c, input).narrow(0, ids.prefix, ids.kept), ids.kept,
          ids.dropped};
}

}  // namespace orrery::qwen_vl
