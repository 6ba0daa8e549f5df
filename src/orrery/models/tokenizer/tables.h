#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/models/tokenizer/bpe.h"

namespace orrery::tokenizer {

/// A string that is cut out of the text before anything else and has an id of its own.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool normalized = false;  // looked for after NFC instead of in the raw text
};

/// What the files of a tokenizer say.
struct Tables {
  std::string source;  // the file that the merges came from, for messages
  Bpe::Vocabulary vocabulary;
  Bpe::Merges merges;
  std::vector<AddedToken> added;
  std::string pad_token = "<|endoftext|>";  // Qwen2Tokenizer's default
  std::optional<int64_t> model_max_length;  // absent where the file says "very large"
};

/// Reads tokenizer.json, or vocab.json + merges.txt + added_tokens.json, and tokenizer_config.json beside
/// them where it is there. Errors of kind checkpoint name the file and the key; what this tokenizer does not
/// do is kind unsupported.
Tables read_tables(const std::string& folder);

// The parts of read_tables, over file contents. `file` is the name that messages give; what is read is added
// to `tables`.
void parse_tokenizer_json(std::string_view content, const std::string& file, Tables& tables);
void parse_vocabulary(std::string_view content, const std::string& file, Tables& tables);
void parse_merges(std::string_view content, const std::string& file, Tables& tables);
void parse_added_tokens(std::string_view content, const std::string& file, Tables& tables);
void parse_tokenizer_config(std::string_view content, const std::string& file, Tables& tables);

}  // namespace orrery::tokenizer
