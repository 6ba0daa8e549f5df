#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::tokenizer {

/// A piece of a message: text, or the place of a picture or a video.
struct ChatPart {
  enum class Kind { kText, kImage, kVideo };
  Kind kind = Kind::kText;
  std::string text;  // of kText
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::vector<ChatPart> parts;
};

struct ChatOptions {
  bool add_generation_prompt = false;  // ends with the opening of the assistant's turn
  bool add_vision_id = false;          // "Picture 1: ", "Video 1: " in front of each
};

/// Qwen2.5-VL's chat template (chat_template.json of Qwen/Qwen2.5-VL-7B-Instruct). A conversation that does
/// not begin with a system message gets the default one. Strings of special tokens in the text stay what they
/// are.
std::string render_chat(std::span<const ChatMessage> messages, const ChatOptions& options = {});

/// The conversation that Cosmos-Predict2.5 and Transfer2.5 embed: their system text, then the prompt as the
/// user's turn (nvidia-cosmos/cosmos-predict2.5 50369b8d, the text encoder's wrapper).
std::string render_cosmos_prompt(std::string_view prompt);

}  // namespace orrery::tokenizer
