#include "orrery/models/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>

#include "orrery/base/error.h"
#include "orrery/models/tokenizer/unicode.h"

namespace orrery::tokenizer {
namespace {

Bpe make_bpe(const Tables& tables) {
  try {
    return Bpe(tables.vocabulary, tables.merges);
  } catch (const Error& error) {
    fail(error.kind(), tables.source, ": ", error.message());
  }
}

/// Those tokens that are (not) normalised, longest first, so that the first match is the longest.
std::vector<AddedToken> longest_first(const std::vector<AddedToken>& tokens, bool normalized) {
  std::vector<AddedToken> out;
  for (const auto& token : tokens)
    if (token.normalized == normalized) out.push_back(token);
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.content.size() > b.content.size(); });
  return out;
}

}  // namespace

Tokenizer Tokenizer::open(const std::string& folder) { return Tokenizer(read_tables(folder)); }

Tokenizer::Tokenizer(const Tables& tables)
    : bpe_(make_bpe(tables)),
      raw_(longest_first(tables.added, false)),
      normalized_(longest_first(tables.added, true)),
      model_max_length_(tables.model_max_length) {
  std::optional<int32_t> pad;
  for (const auto& [content, id] : tables.vocabulary)
    id_count_ = std::max<int64_t>(id_count_, int64_t{id} + 1);
  for (const auto& token : tables.added) {
    id_count_ = std::max<int64_t>(id_count_, int64_t{token.id} + 1);
    if (token.content == tables.pad_token) pad = token.id;
  }
  if (const auto found = tables.vocabulary.find(tables.pad_token); !pad && found != tables.vocabulary.end())
    pad = found->second;
  if (!pad)
    fail(ErrorKind::kCheckpoint, tables.source, ": no id for the pad_token \"", tables.pad_token,
         "\" of tokenizer_config.json");
  pad_id_ = *pad;
}

template <class Text>
void Tokenizer::split(std::string_view text, const std::vector<AddedToken>& tokens, std::vector<int32_t>& ids,
                      const Text& other) const {
  std::array<bool, 256> may_start{};
  for (const auto& token : tokens) may_start[static_cast<uint8_t>(token.content[0])] = true;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto token = !may_start[static_cast<uint8_t>(text[at])]
                           ? tokens.end()
                           : std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& candidate) {
                               return text.substr(at).starts_with(candidate.content);
                             });
    if (token == tokens.end()) {
      ++at;
      continue;
    }
    if (at > done) other(text.substr(done, at - done));
    ids.push_back(token->id);
    done = at += token->content.size();
  }
  if (done < text.size()) other(text.substr(done));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  require(text.size() <= kLongestText, "the text has ", text.size(), " bytes; at most ", kLongestText,
          " are read");
  require_utf8(text);
  std::vector<int32_t> ids;
  split(text, raw_, ids, [&](std::string_view part) {
    const std::string normal = nfc(part);
    split(normal, normalized_, ids, [&](std::string_view plain) {
      pre_tokenizer_.split(plain, [&](std::string_view piece) { bpe_.encode(piece, ids); });
    });
  });
  return ids;
}

}  // namespace orrery::tokenizer
