#include "orrery/models/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/base/clock.h"
#include "orrery/models/tokenizer/chat_template.h"
#include "orrery/models/tokenizer/unicode.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::tokenizer {
namespace {

using testing::expect_error;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

/// The 256 bytes with their own values as ids, then the merges, then the added tokens.
Tables small_tables(const Bpe::Merges& merges = {}, const std::vector<std::string>& added = {}) {
  Tables tables;
  tables.source = "small";
  for (int byte = 0; byte < 256; ++byte) tables.vocabulary[byte_character(static_cast<uint8_t>(byte))] = byte;
  for (const auto& [left, right] : merges)
    tables.vocabulary.emplace(left + right, static_cast<int32_t>(tables.vocabulary.size()));
  tables.merges = merges;
  auto next = static_cast<int32_t>(tables.vocabulary.size());
  for (const auto& token : added) tables.added.push_back({token, next++});
  tables.added.push_back({tables.pad_token, next});
  return tables;
}

Ids bytes(std::string_view text) {
  Ids ids;
  for (char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

Json small_json() {
  Json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_character(static_cast<uint8_t>(byte))] = byte;
  vocabulary["ab"] = 256;
  return {{"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             Json::array({{{"type", "Split"},
                           {"pattern", {{"Regex", PreTokenizer::kPattern}}},
                           {"behavior", "Isolated"},
                           {"invert", false}},
                          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}})}}},
          {"added_tokens", Json::array({{{"id", 257}, {"content", "<|endoftext|>"}}})},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array({"a b"})}}}};
}

Tables parsed(const Json& json) {
  Tables tables;
  parse_tokenizer_json(json.dump(), "tokenizer.json", tables);
  return tables;
}

TEST(Tokenizer, MergesByRankAndThenFromTheLeft) {
  const Tokenizer tokenizer(small_tables({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "aa"}}));
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{'a', 256}));
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{258, 'a'}));
  EXPECT_EQ(tokenizer.encode("aaaaaaa"), (Ids{259, 258, 'a'}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Tokenizer, LongWordsAreNotQuadratic) {
  const Tokenizer tokenizer(small_tables({{"a", "a"}, {"aa", "aa"}, {"Ġ", "Ġ"}}));
  const Stopwatch watch;
  EXPECT_EQ(tokenizer.encode(std::string(Tokenizer::kLongestText, 'a')).size(), Tokenizer::kLongestText / 4);
  EXPECT_EQ(tokenizer.encode(std::string(Tokenizer::kLongestText, ' ')).size(), Tokenizer::kLongestText / 2);
  EXPECT_LT(watch.seconds(), 30);
  expect_error(ErrorKind::kRequest, "1048577 bytes",
               [&] { tokenizer.encode(std::string(Tokenizer::kLongestText + 1, 'a')); });
}

TEST(Tokenizer, AddedTokensComeFirstAndTheLongestWins) {
  const Tokenizer tokenizer(small_tables({}, {"<a>", "<a><b>", "a"}));
  EXPECT_EQ(tokenizer.encode("<a><b>"), Ids{257});
  EXPECT_EQ(tokenizer.encode("x<a>"), (Ids{'x', 256}));
  EXPECT_EQ(tokenizer.encode("<a<a>>"), (Ids{'<', 258, 256, '>'}));
}

TEST(Tokenizer, NormalizedTokensAreFoundAfterNfc) {
  Tables tables = small_tables();
  tables.added.push_back({"\u00e9", 300, true});
  EXPECT_EQ(Tokenizer(tables).encode("e\u0301x"), (Ids{300, 'x'}));
  tables.added.back().normalized = false;
  EXPECT_EQ(Tokenizer(tables).encode("e\u0301x"), bytes("\u00e9x"));
}

TEST(Tokenizer, WhiteSpaceIsUnicodes) {
  std::vector<std::string> pieces;
  const auto split = [&](std::string_view text) {
    pieces.clear();
    PreTokenizer().split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
    return pieces;
  };
  using Pieces = std::vector<std::string>;
  for (const char* space :
       {"\t", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000"})
    EXPECT_EQ(split(std::string(space) + space + "!"), (Pieces{space, space, "!"})) << space;
  // Not white space, so part of a run of other characters: U+180E, U+200B, U+FEFF.
  for (const char* other : {"\u180e", "\u200b", "\ufeff"})
    EXPECT_EQ(split(std::string(other) + other + "!"), Pieces{std::string(other) + other + "!"}) << other;
  EXPECT_EQ(split("a  \r\n b"), (Pieces{"a", "  \r\n", " b"}));
  EXPECT_EQ(split(std::string("a\0b", 3)), (Pieces{"a", std::string("\0b", 2)}));
}

TEST(Tokenizer, RefusesBrokenText) {
  const Tokenizer tokenizer(small_tables());
  for (const char* text : {"ab\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"})
    expect_error(ErrorKind::kRequest, "UTF-8 at byte", [&] { tokenizer.encode(text); });
  std::string marks = "e";
  for (int i = 0; i < 100000; ++i) marks += i % 2 ? "\u0301" : "\u0316";
  expect_error(ErrorKind::kRequest, "combining marks", [&] { tokenizer.encode(marks); });
}

TEST(Tokenizer, Nfc) {
  EXPECT_EQ(nfc("e\u0301\u0301"), "\u00e9\u0301");
  EXPECT_EQ(nfc("\u1112\u1161\u11ab"), "\ud55c");
  EXPECT_EQ(nfc("\u1102\u1169\u11a7"), "\ub178\u11a7");
  EXPECT_EQ(nfc("\u11a7e\u0301"), "\u11a7\u00e9");
  EXPECT_EQ(nfc("\u212a"), "K");
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093c");  // a composition exclusion
  EXPECT_EQ(nfc(std::string_view("\0a", 2)), std::string_view("\0a", 2));
}

TEST(TokenizerFiles, ReadsTokenizerJson) {
  const Tokenizer tokenizer(parsed(small_json()));
  EXPECT_EQ(tokenizer.encode("abb<|endoftext|>"), (Ids{256, 'b', 257}));
  EXPECT_EQ(tokenizer.pad_id(), 257);
  EXPECT_EQ(tokenizer.id_count(), 258);
  EXPECT_EQ(tokenizer.model_max_length(), std::nullopt);
  Json pairs = small_json();
  pairs["model"]["merges"] = Json::array({Json::array({"a", "b"})});
  EXPECT_EQ(Tokenizer(parsed(pairs)).encode("ab"), Ids{256});
}

TEST(TokenizerFiles, ReadsMerges) {
  Tables tables;
  parse_merges("#version: 0.2\r\n# #\r\n\na b", "merges.txt", tables);
  EXPECT_EQ(tables.merges, (Bpe::Merges{{"#", "#"}, {"a", "b"}}));
}

TEST(TokenizerFiles, ReadsAddedTokens) {
  Tables tables;
  parse_added_tokens(R"({"<|endoftext|>": 5})", "added_tokens.json", tables);
  ASSERT_EQ(tables.added.size(), 1u);
  EXPECT_EQ(tables.added[0].content, "<|endoftext|>");
  EXPECT_EQ(tables.added[0].id, 5);
}

TEST(TokenizerFiles, ReadsConfig) {
  Tables tables;
  parse_tokenizer_config(R"({"model_max_length": 64, "pad_token": {"content": "<p>"},
                             "added_tokens_decoder": {"7": {"content": "<p>", "normalized": true}}})",
                         "c", tables);
  EXPECT_EQ(tables.model_max_length, 64);
  EXPECT_EQ(tables.pad_token, "<p>");
  ASSERT_EQ(tables.added.size(), 1u);
  EXPECT_EQ(tables.added[0].id, 7);
  EXPECT_TRUE(tables.added[0].normalized);
  Tables unlimited;
  parse_tokenizer_config(R"({"model_max_length": 1000000000000000019884624838656})", "c", unlimited);
  EXPECT_EQ(unlimited.model_max_length, std::nullopt);
}

struct Edit {
  const char* pointer;
  Json value;
  const char* message;
};

TEST(TokenizerFiles, NamesTheKeyThatIsBroken) {
  const Edit edits[] = {
      {"/model", nullptr, "tokenizer.json: model:"},
      {"/model/vocab", Json::array(), "model.vocab"},
      {"/model/vocab/ab", -1, "model.vocab.ab"},
      {"/model/vocab/ab", "x", "model.vocab.ab"},
      {"/model/vocab/ab", 1e10, "model.vocab.ab"},
      {"/model/merges", "a b", "model.merges"},
      {"/model/merges/0", "ab", "model.merges[0]"},
      {"/model/merges/0", {"a"}, "model.merges[0]"},
      {"/model/merges/0", "a c", "merge 0: the token \"ac\""},
      {"/added_tokens", 3, "added_tokens"},
      {"/added_tokens/0", 3, "added_tokens[0]"},
      {"/added_tokens/0/id", nullptr, "added_tokens[0].id"},
      {"/added_tokens/0/content", "", "added_tokens[0]"},
      {"/added_tokens/0/content", "<other>", "pad_token"},
  };
  for (const auto& [pointer, value, message] : edits) {
    Json json = small_json();
    json[Json::json_pointer(pointer)] = value;
    expect_error(ErrorKind::kCheckpoint, message, [&] { Tokenizer(parsed(json)); });
    expect_error(ErrorKind::kCheckpoint, "tokenizer.json: ", [&] { Tokenizer(parsed(json)); });
  }
  Json missing_byte = small_json();
  missing_byte["model"]["vocab"].erase("\u0120");
  expect_error(ErrorKind::kCheckpoint, "byte 32", [&] { Tokenizer(parsed(missing_byte)); });
  Json twice = small_json();
  twice["added_tokens"].push_back({{"id", 258}, {"content", "<|endoftext|>"}});
  expect_error(ErrorKind::kCheckpoint, "257 and 258", [&] { parsed(twice); });
}

TEST(TokenizerFiles, NamesWhatIsNotSupported) {
  const Edit edits[] = {
      {"/model/type", "Unigram", "model.type"},
      {"/model/byte_fallback", true, "model.byte_fallback"},
      {"/model/ignore_merges", true, "model.ignore_merges"},
      {"/model/end_of_word_suffix", "</w>", "model.end_of_word_suffix"},
      {"/normalizer", nullptr, "normalizer"},
      {"/pre_tokenizer", {{"type", "ByteLevel"}}, "pre_tokenizer"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\s+", "Qwen2's pattern"},
      {"/pre_tokenizer/pretokenizers/1/add_prefix_space", true, "pre_tokenizer"},
      {"/post_processor", {{"type", "TemplateProcessing"}}, "post_processor"},
      {"/added_tokens/0/lstrip", true, "added_tokens[0]: lstrip"},
  };
  for (const auto& [pointer, value, message] : edits) {
    Json json = small_json();
    json[Json::json_pointer(pointer)] = value;
    expect_error(ErrorKind::kUnsupported, message, [&] { parsed(json); });
  }
}

TEST(TokenizerFiles, NamesTheFileThatIsBroken) {
  const testing::TempDir folder;
  const auto refused = [&](const std::string& part) {
    expect_error(ErrorKind::kCheckpoint, part, [&] { Tokenizer::open(folder.path().string()); });
  };
  refused("expected tokenizer.json, or vocab.json and merges.txt");
  std::ofstream(folder / "vocab.json") << "{\"a\": 0}";
  std::ofstream(folder / "merges.txt") << "a b c";
  refused("merges.txt: line 1");
  std::ofstream(folder / "tokenizer.json") << "{\"model\": ";
  refused("tokenizer.json: expected a JSON object");
}

TEST(ChatTemplate, AddsTheDefaultSystemText) {
  const ChatMessage user[] = {{"user", {{.text = "hi"}}}};
  EXPECT_EQ(render_chat(user, {.add_generation_prompt = true}),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
            "<|im_start|>assistant\n");
  EXPECT_EQ(render_chat({}), "");
}

TEST(ChatTemplate, NumbersPicturesAndVideos) {
  using Kind = ChatPart::Kind;
  const ChatMessage messages[] = {{"system", {}},
                                  {"user", {{Kind::kImage, ""}, {Kind::kVideo, ""}, {Kind::kText, "a"}}},
                                  {"user", {{Kind::kImage, ""}}}};
  EXPECT_EQ(render_chat(messages, {.add_vision_id = true}),
            "<|im_start|>system\n<|im_end|>\n"
            "<|im_start|>user\nPicture 1: <|vision_start|><|image_pad|><|vision_end|>Video 1: "
            "<|vision_start|><|video_pad|><|vision_end|>a<|im_end|>\n"
            "<|im_start|>user\nPicture 2: <|vision_start|><|image_pad|><|vision_end|><|im_end|>\n");
}

TEST(ChatTemplate, Cosmos) {
  EXPECT_EQ(render_cosmos_prompt("a cat"),
            "<|im_start|>system\nYou are a helpful assistant who will provide prompts to an image "
            "generator.<|im_end|>\n"
            "<|im_start|>user\na cat<|im_end|>\n");
}

}  // namespace
}  // namespace orrery::tokenizer
