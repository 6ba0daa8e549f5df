#include "orrery/models/tokenizer/tables.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/models/tokenizer/pre_tokenizer.h"

namespace orrery::tokenizer {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

template <class... Args>
void expect(bool condition, const Args&... args) {
  if (!condition) fail(ErrorKind::kCheckpoint, args...);
}

template <class... Args>
void support(bool condition, const Args&... args) {
  if (!condition) fail(ErrorKind::kUnsupported, args...);
}

Json parse(std::string_view content, const std::string& file) {
  Json json = Json::parse(content, nullptr, false);
  expect(json.is_object(), file, ": expected a JSON object");
  return json;
}

/// The member, or null if it is absent or the value is no object.
const Json& member(const Json& json, const char* key) {
  static const Json kNull;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : kNull;
}

int32_t id_from(const Json& json, const std::string& file, const std::string& key) {
  expect(json.is_number_integer() && json >= 0 && json <= std::numeric_limits<int32_t>::max(), file, ": ",
         key, ": expected a token id");
  return json.get<int32_t>();
}

/// The content of a token that is written as a string or as an object with "content".
std::string content_of(const Json& json, const std::string& file, const std::string& key) {
  const Json& content = json.is_object() ? member(json, "content") : json;
  expect(content.is_string(), file, ": ", key, ": expected a token");
  return content.get<std::string>();
}

void add_token(Tables& tables, AddedToken token, const std::string& file, const std::string& key) {
  expect(!token.content.empty(), file, ": ", key, ": the token is empty");
  const auto known = std::find_if(tables.added.begin(), tables.added.end(),
                                  [&](const AddedToken& other) { return other.content == token.content; });
  if (known == tables.added.end()) return tables.added.push_back(std::move(token));
  expect(known->id == token.id, file, ": ", key, ": \"", token.content, "\" has the ids ", known->id, " and ",
         token.id);
}

AddedToken added_token(const Json& json, int32_t id, const std::string& file, const std::string& key) {
  for (const char* flag : {"lstrip", "rstrip", "single_word"})
    support(member(json, flag) != true, file, ": ", key, ": ", flag, " is not supported");
  return {content_of(json, file, key), id, member(json, "normalized") == true};
}

void add_vocabulary(const Json& vocabulary, const std::string& file, const std::string& key, Tables& tables) {
  expect(vocabulary.is_object(), file, ": ", key, ": expected an object from token to id");
  tables.vocabulary.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items())
    tables.vocabulary[token] = id_from(id, file, key + "." + token);
}

void add_merge(std::string_view merge, const std::string& file, const std::string& key, Tables& tables) {
  const size_t space = merge.find(' ');
  expect(space != std::string_view::npos && space > 0 && space + 1 < merge.size() &&
             merge.find(' ', space + 1) == std::string_view::npos,
         file, ": ", key, ": expected two tokens with a space between them");
  tables.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
}

/// The model's options that would change ids; null, false and "" all mean "off".
void check_model(const Json& model, const std::string& file) {
  support(member(model, "type") == "BPE" || member(model, "type").is_null(), file,
          ": model.type: expected BPE");
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"}) {
    const Json& value = member(model, key);
    support(value.is_null() || value == false || value == "", file, ": model.", key, " is not supported");
  }
}

void check_steps(const Json& json, const std::string& file) {
  support(member(member(json, "normalizer"), "type") == "NFC", file, ": normalizer: expected NFC");
  const Json& steps = member(member(json, "pre_tokenizer"), "pretokenizers");
  const Json kNone;
  const Json& split = steps.is_array() && steps.size() == 2 ? steps[0] : kNone;
  const Json& bytes = steps.is_array() && steps.size() == 2 ? steps[1] : kNone;
  support(member(split, "type") == "Split" && member(bytes, "type") == "ByteLevel", file,
          ": pre_tokenizer: expected a Split and a ByteLevel step");
  support(member(member(split, "pattern"), "Regex") == std::string(PreTokenizer::kPattern) &&
              member(split, "behavior") == "Isolated" && member(split, "invert") != true,
          file, ": pre_tokenizer: expected Qwen2's pattern, isolated");
  support(member(bytes, "add_prefix_space") != true && member(bytes, "use_regex") == false, file,
          ": pre_tokenizer: expected a ByteLevel step without prefix space and pattern");
  const Json& post = member(json, "post_processor");
  support(post.is_null() || member(post, "type") == "ByteLevel", file,
          ": post_processor: expected none or ByteLevel");
}

std::string read_part(const fs::path& path) {
  try {
    return read_file(path.string());
  } catch (const Error& error) {
    fail(ErrorKind::kCheckpoint, error.message());
  }
}

}  // namespace

void parse_tokenizer_json(std::string_view content, const std::string& file, Tables& tables) {
  const Json json = parse(content, file);
  const Json& model = member(json, "model");
  expect(model.is_object(), file, ": model: expected an object");
  check_model(model, file);
  check_steps(json, file);
  add_vocabulary(member(model, "vocab"), file, "model.vocab", tables);
  const Json& merges = member(model, "merges");
  expect(merges.is_array(), file, ": model.merges: expected a list");
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Json& merge = merges[rank];
    const std::string key = concat("model.merges[", rank, "]");
    if (merge.is_string()) {
      add_merge(merge.get_ref<const std::string&>(), file, key, tables);
    } else {
      expect(merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string(), file,
             ": ", key, ": expected \"a b\" or [\"a\", \"b\"]");
      tables.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    }
  }
  const Json& added = member(json, "added_tokens");
  expect(added.is_array() || added.is_null(), file, ": added_tokens: expected a list");
  for (size_t i = 0; i < added.size(); ++i) {
    const std::string key = concat("added_tokens[", i, "]");
    expect(added[i].is_object(), file, ": ", key, ": expected an object");
    add_token(tables, added_token(added[i], id_from(member(added[i], "id"), file, key + ".id"), file, key),
              file, key);
  }
  tables.source = file;
}

void parse_vocabulary(std::string_view content, const std::string& file, Tables& tables) {
  add_vocabulary(parse(content, file), file, "vocabulary", tables);
}

void parse_merges(std::string_view content, const std::string& file, Tables& tables) {
  size_t number = 0;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    std::string_view line = content.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    add_merge(line, file, concat("line ", number), tables);
  }
  tables.source = file;
}

void parse_added_tokens(std::string_view content, const std::string& file, Tables& tables) {
  const Json json = parse(content, file);
  for (const auto& [token, id] : json.items())
    add_token(tables, {token, id_from(id, file, token), false}, file, token);
}

void parse_tokenizer_config(std::string_view content, const std::string& file, Tables& tables) {
  const Json json = parse(content, file);
  const Json& decoder = member(json, "added_tokens_decoder");
  expect(decoder.is_object() || decoder.is_null(), file,
         ": added_tokens_decoder: expected an object from id to token");
  for (const auto& [id, token] : decoder.items()) {
    const std::string key = "added_tokens_decoder." + id;
    const Json number = Json::parse(id, nullptr, false);
    add_token(tables, added_token(token, id_from(number, file, key), file, key), file, key);
  }
  if (const Json& pad = member(json, "pad_token"); !pad.is_null())
    tables.pad_token = content_of(pad, file, "pad_token");
  // "No limit" is written as a very large number.
  constexpr double kNoLimit = 1e6;
  const Json& length = member(json, "model_max_length");
  expect(length.is_null() || (length.is_number() && length > 0), file,
         ": model_max_length: expected a positive number");
  if (length.is_number() && length.get<double>() < kNoLimit) tables.model_max_length = length.get<int64_t>();
}

Tables read_tables(const std::string& folder) {
  const fs::path root = folder;
  const auto read = [&](const char* name, auto parse_part, Tables& tables) {
    parse_part(read_part(root / name), (root / name).string(), tables);
  };
  Tables tables;
  if (fs::exists(root / "tokenizer.json")) {
    read("tokenizer.json", parse_tokenizer_json, tables);
  } else if (fs::exists(root / "vocab.json") && fs::exists(root / "merges.txt")) {
    read("vocab.json", parse_vocabulary, tables);
    read("merges.txt", parse_merges, tables);
    if (fs::exists(root / "added_tokens.json")) read("added_tokens.json", parse_added_tokens, tables);
  } else {
    fail(ErrorKind::kCheckpoint, folder, ": expected tokenizer.json, or vocab.json and merges.txt");
  }
  if (fs::exists(root / "tokenizer_config.json"))
    read("tokenizer_config.json", parse_tokenizer_config, tables);
  return tables;
}

}  // namespace orrery::tokenizer
