#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/models/tokenizer/pre_tokenizer.h"
#include "orrery/models/tokenizer/tables.h"

namespace orrery::tokenizer {

/// Qwen2's tokenizer: added tokens are cut out, the rest is brought to NFC, cut into pieces and merged by
/// byte-level BPE. Nothing is put in front or at the end. Source: huggingface/transformers models/qwen2, and
/// its tokenizer.json. Immutable: any number of threads may call it.
class Tokenizer {
 public:
  /// Reads a folder: tokenizer.json, or vocab.json + merges.txt (+ added_tokens.json); tokenizer_config.json
  /// where present. Error of kind checkpoint, naming file and key, if they are broken; unsupported if they
  /// ask for another algorithm.
  static Tokenizer open(const std::string& folder);

  explicit Tokenizer(const Tables& tables);

  /// The ids of the text. Error of kind request if it is not UTF-8 or longer than kLongestText.
  std::vector<int32_t> encode(std::string_view text) const;
  static constexpr size_t kLongestText = size_t{1} << 20;  // bytes

  /// The id that fills sequences up.
  int32_t pad_id() const { return pad_id_; }

  /// The file's limit on the length of a sequence, if it has one.
  std::optional<int64_t> model_max_length() const { return model_max_length_; }

  /// One more than the highest id: an embedding needs that many rows.
  int64_t id_count() const { return id_count_; }

 private:
  template <class Text>
  void split(std::string_view text, const std::vector<AddedToken>& tokens, std::vector<int32_t>& ids,
             const Text& other) const;

  Bpe bpe_;
  PreTokenizer pre_tokenizer_;
  std::vector<AddedToken> raw_, normalized_;  // longest first
  std::optional<int64_t> model_max_length_;
  int32_t pad_id_ = 0;
  int64_t id_count_ = 0;
};

}  // namespace orrery::tokenizer
