// Files that no editor writes; the ordinary ones are in tests/cases.
#include "orrery/config/spec_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "orrery/base/error.h"
#include "orrery/base/text.h"

namespace orrery::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr SpecFormat kFormats[] = {SpecFormat::kJson, SpecFormat::kJsonLines, SpecFormat::kYaml};

std::string refusal(std::string_view text, SpecFormat format) {
  try {
    parse_spec(text, format, "file");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRequest);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(SpecFile, EveryTruncationIsRefusedOrASample) {
  const std::string text =
      R"({"name": "a", "inference_type": "text2world", "prompt": "x \u00e9 \ud83d\ude00", "seed": -1, "guidance": 1.5e0})";
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length), SpecFormat::kJson), "") << length;
  EXPECT_EQ(refusal(text, SpecFormat::kJson), "");
  EXPECT_EQ(refusal(text, SpecFormat::kJsonLines), "");
}

TEST(SpecFile, EverySingleByteChangeIsHandled) {
  const std::string json = R"({"samples": {"a": {"prompt": "x", "seed": 3}}, "guidance": 7})";
  const std::string yaml = "samples:\n  a: {prompt: &p x, seed: 3}\n  b: {prompt: *p}\nguidance: !!int 7\n";
  for (const std::string& text : {json, yaml})
    for (size_t at = 0; at < text.size(); ++at)
      for (int byte = 0; byte < 256; byte += 3) {
        std::string changed = text;
        changed[at] = static_cast<char>(byte);
        for (SpecFormat format : kFormats) refusal(changed, format);
      }
}

TEST(SpecFile, DeepNestingIsRefusedAtOnce) {
  EXPECT_EQ(refusal(repeated("[", 1000000), SpecFormat::kJson),
            "file:1: expected one object, found a list (several samples: one per line of a .jsonl file)");
  EXPECT_EQ(refusal(repeated("{\"a\":", 1000000), SpecFormat::kJson),
            "file:1: \"a\": expected a single value, found an object");
  for (const char* opening : {"[", "{a: ", "- ", "? ", "a: {", "!!map {a: "})
    EXPECT_THAT(refusal(repeated(opening, 100000), SpecFormat::kYaml), StartsWith("file:1: ")) << opening;
}

TEST(SpecFile, YamlThatTheParserNeverFinishesIsRefused) {
  EXPECT_EQ(refusal(", \"a\": b", SpecFormat::kYaml), "file: expected one YAML document, found more");
}

TEST(SpecFile, OneLongAliasedTextIsCountedOnEveryUse) {
  std::string text = concat("samples:\n  a: {prompt: &p \"", repeated("x", 1000), "\"}\n");
  for (int i = 0; i < 20; ++i) text += concat("  b", i, ": {prompt: *p}\n");
  EXPECT_THAT(refusal(text, SpecFormat::kYaml), HasSubstr("aliases expand to more than the file holds"));
}

TEST(SpecFile, BytesThatAreNotUtf8AreRefusedInJson) {
  EXPECT_THAT(refusal("{\"name\": \"a\", \"prompt\": \"\xFF\"}", SpecFormat::kJson),
              StartsWith("file:1: not valid JSON: "));
}

TEST(SpecFile, LongValuesAreCutInMessages) {
  const std::string message =
      refusal(concat("{\"name\": \"a\", \"seed\": \"", repeated("y", 100000), "\"}"), SpecFormat::kJson);
  EXPECT_LT(message.size(), 200u);
  EXPECT_THAT(message, HasSubstr("yyy"));
}

TEST(SpecFile, HugeFilesAreRefusedUnread) {
  const auto path = std::filesystem::temp_directory_path() / "orrery_huge_spec.json";
  { std::ofstream out(path); }
  std::filesystem::resize_file(path, uintmax_t{1} << 33);
  try {
    read_requests({path.string()}, {});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a text of at most 4.2 MB, found 8.6 GB"));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace orrery::config
