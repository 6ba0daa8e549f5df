#include "orrery/models/tokenizer/chat_template.h"

#include "orrery/base/error.h"

namespace orrery::tokenizer {
namespace {

constexpr std::string_view kDefaultSystem = "You are a helpful assistant.";
constexpr std::string_view kCosmosSystem =
    "You are a helpful assistant who will provide prompts to an image generator.";

}  // namespace

std::string render_chat(std::span<const ChatMessage> messages, const ChatOptions& options) {
  std::string out;
  int pictures = 0, videos = 0;
  if (!messages.empty() && messages[0].role != "system")
    out += concat("<|im_start|>system\n", kDefaultSystem, "<|im_end|>\n");
  for (const auto& message : messages) {
    out += concat("<|im_start|>", message.role, "\n");
    for (const auto& part : message.parts) {
      switch (part.kind) {
        case ChatPart::Kind::kText:
          out += part.text;
          break;
        case ChatPart::Kind::kImage:
          ++pictures;
          if (options.add_vision_id) out += concat("Picture ", pictures, ": ");
          out += "<|vision_start|><|image_pad|><|vision_end|>";
          break;
        case ChatPart::Kind::kVideo:
          ++videos;
          if (options.add_vision_id) out += concat("Video ", videos, ": ");
          out += "<|vision_start|><|video_pad|><|vision_end|>";
          break;
      }
    }
    out += "<|im_end|>\n";
  }
  if (options.add_generation_prompt) out += "<|im_start|>assistant\n";
  return out;
}

std::string render_cosmos_prompt(std::string_view prompt) {
  const ChatMessage messages[] = {{"system", {{.text = std::string(kCosmosSystem)}}},
                                  {"user", {{.text = std::string(prompt)}}}};
  return render_chat(messages);
}

}  // namespace orrery::tokenizer
