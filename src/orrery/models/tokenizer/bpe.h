#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::tokenizer {

/// Byte-level BPE (Sennrich et al. 2016; Radford et al. 2019, §2.2): adjacent tokens are merged, the pair of
/// lowest rank first and of equal pairs the leftmost, until none is left.
class Bpe {
 public:
  using Vocabulary = std::unordered_map<std::string, int32_t>;
  using Merges = std::vector<std::pair<std::string, std::string>>;

  /// Tokens are spelled in the 256 printable characters that stand for bytes (GPT-2's bytes_to_unicode);
  /// merges in order of rank. Error of kind checkpoint, naming the token, if a byte or a part or result of a
  /// merge has no id.
  Bpe(const Vocabulary& vocabulary, const Merges& merges);

  /// Appends the ids of one piece of text (raw bytes). Time n log n in its length.
  void encode(std::string_view piece, std::vector<int32_t>& ids) const;

 private:
  struct Merge {
    int32_t rank;
    int32_t id;
  };
  const Merge* merge_of(int32_t left, int32_t right) const;

  std::array<int32_t, 256> byte_ids_;
  std::unordered_map<uint64_t, Merge> merges_;
};

/// The character (as UTF-8) that stands for a byte in vocabularies.
std::string byte_character(uint8_t byte);

}  // namespace orrery::tokenizer
