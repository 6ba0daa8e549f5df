#include "orrery/models/tokenizer/chat_template.h"
#include "orrery/models/tokenizer/tokenizer.h"
#include "tests/support/golden.h"

namespace orrery::tokenizer {
namespace {

namespace fs = std::filesystem;
using testing::Json;
using Ids = std::vector<int32_t>;

/// Calls f(tokenizer, cases) for both file layouts of every golden folder.
template <class F>
void for_each_tokenizer(const F& f) {
  int layouts = 0;
  for (const fs::path& folder : testing::golden_folders("text_encoder")) {
    const Json cases = testing::read_json(folder / "tokenizer_cases.json");
    for (const char* layout : {"tokenizer", "tokenizer_vocab_merges"}) {
      SCOPED_TRACE((folder / layout).string());
      f(Tokenizer::open((folder / layout).string()), cases);
      ++layouts;
    }
  }
  EXPECT_GE(layouts, 2);
}

TEST(TokenizerGolden, Ids) {
  for_each_tokenizer([](const Tokenizer& tokenizer, const Json& cases) {
    ASSERT_FALSE(cases["cases"].empty());
    for (const Json& c : cases["cases"])
      EXPECT_EQ(tokenizer.encode(c["text"].get<std::string>()), c["ids"].get<Ids>()) << c["text"];
  });
}

TEST(TokenizerGolden, Chat) {
  for_each_tokenizer([](const Tokenizer& tokenizer, const Json& cases) {
    ASSERT_FALSE(cases["chat"].empty());
    for (const Json& c : cases["chat"]) {
      std::vector<ChatMessage> messages;
      for (const Json& message : c["messages"]) {
        messages.push_back({message["role"], {}});
        for (const Json& part : message["content"]) {
          ASSERT_EQ(part["type"], "text");
          messages.back().parts.push_back({.text = part["text"]});
        }
      }
      const std::string rendered = render_chat(messages);
      EXPECT_EQ(rendered, c["rendered"].get<std::string>());
      EXPECT_EQ(tokenizer.encode(rendered), c["ids"].get<Ids>());
    }
  });
}

TEST(TokenizerGolden, Config) {
  for (const fs::path& folder : testing::golden_folders("text_encoder")) {
    const Json config = testing::read_json(folder / "tokenizer/tokenizer_config.json");
    const Tokenizer tokenizer = Tokenizer::open((folder / "tokenizer").string());
    EXPECT_EQ(tokenizer.encode(config["pad_token"].get<std::string>()), Ids{tokenizer.pad_id()});
    EXPECT_EQ(tokenizer.model_max_length(), config["model_max_length"].get<int64_t>());
  }
}

}  // namespace
}  // namespace orrery::tokenizer
