#pragma once
#include <functional>
#include <memory>
#include <string_view>

namespace orrery::tokenizer {

/// Cuts text into the pieces within which byte pairs are merged: Qwen2's pattern (transformers models/qwen2,
/// the Split of tokenizer.json). Every byte of the text is in exactly one piece.
class PreTokenizer {
 public:
  /// The pattern as tokenizer.json writes it.
  static constexpr std::string_view kPattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

  PreTokenizer();

  /// Calls `piece` for each piece in order. text: valid UTF-8. Any thread may call it.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  std::shared_ptr<const void> code_;  // pcre2_code
};

}  // namespace orrery::tokenizer
