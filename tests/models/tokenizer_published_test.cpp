// Ids of the published Qwen2.5 vocabulary (spec qwen2.5-vl-text §5 and §8.4, qwen-image §8.1).
// scripts/fetch-tokenizer puts the vocabulary, which is too large for the repository, where these tests look.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "orrery/models/tokenizer/chat_template.h"
#include "orrery/models/tokenizer/tokenizer.h"

namespace orrery::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

struct Case {
  std::string text;
  Ids ids;
};

const Case kStrings[] = {
    {"", {}},
    {" ", {220}},
    {"Hello world", {9707, 1879}},
    {" Hello world", {21927, 1879}},
    {"a cat", {64, 8251}},
    {"dance monkey", {98875, 38703}},
    {"bad quality", {13855, 4271}},
    {"Ultra HD, 4K, cinematic composition.", {81478, 12169, 11, 220, 19, 42, 11, 64665, 18037, 13}},
    {", 超清，4K，电影级构图.",
     {11, 8908, 114, 227, 79766, 3837, 19, 42, 3837, 100378, 52334, 77835, 28029, 13}},
    {"通义千问", {31935, 64559, 99320, 56007}},
    {"一只猫坐在沙发上", {102292, 100472, 104427, 117733}},
    {"don't DON'T you'll I'VE", {15007, 944, 44273, 17323, 498, 3278, 358, 6, 4491}},
    {"12345", {16, 17, 18, 19, 20}},
    {"π≈3.14", {48245, 144540, 18, 13, 16, 19}},
    {"x²+½", {87, 29456, 10, 26062}},
    {"Ⅷ", {70467, 100}},
    {"e\u0301", {963}},
    {"é", {963}},
    {"\u1112\u1161\u11ab", {23573}},
    {"한", {23573}},
    {"e\u0301\u0301", {963, 53839}},
    {"K\u212A", {50457}},
    {"  leading", {220, 6388}},
    {"trailing  ", {376, 14277, 256}},
    {"a  b", {64, 220, 293}},
    {"a   b", {64, 256, 293}},
    {"\n", {198}},
    {"\n\n", {271}},
    {"\r\n", {319}},
    {"a\n\nb", {64, 271, 65}},
    {"a \n b", {64, 715, 293}},
    {"\t\tindent", {197, 197, 32840}},
    {"a\u00a0b", {64, 4102, 65}},
    {"a\u3000b", {64, 22441, 65}},
    {"naïve café", {3376, 37572, 586, 51950}},
    {"Straße", {76314, 23455}},
    {"हिन्दी", {93948, 42311, 101, 30484, 99, 43647}},
    {"ภาษาไทย", {127382, 125451}},
    {"العربية", {31382, 23224, 125600}},
    {"עברית", {133584}},
    {"日本語のテキスト", {101059, 102819, 15767, 56833, 61803, 70534}},
    {"한국어", {23573, 124785, 31079}},
    {"😀", {141334}},
    {"👩\u200d👩\u200d👧", {145233, 378, 235, 145233, 378, 235, 145665}},
    {"🇩🇪", {145862, 145336}},
    {"👍🏽", {144349, 145375}},
    {"C++/libtorch", {34, 1027, 14, 2740, 27414}},
    {"foo_bar(baz)->qux[0];", {7975, 14388, 1883, 1370, 3997, 446, 87, 58, 15, 5265}},
    {"!!!???\n\nNext", {12069, 94521, 5847}},
    {"...\n", {9338}},
    {"    return x;", {262, 470, 856, 26}},
    {"http://example.com/a?b=c", {1254, 1110, 8687, 905, 14186, 30, 65, 19535}},
    {"Qwen-Image-Edit-2509", {48, 16948, 12, 1906, 12, 4036, 12, 17, 20, 15, 24}},
    {"<|im_end|> <|im_start|>", {151645, 220, 151644}},
    {"< |im_end| >", {27, 760, 318, 6213, 91, 861}},
    {"<|endoftext|>hello", {151643, 14990}},
    {"<tool_call>x</tool_call>", {151657, 87, 151658}},
    {"<think>", {13708, 766, 29}},
    {"Picture 1: <|vision_start|><|image_pad|><|vision_end|>",
     {24669, 220, 16, 25, 220, 151652, 151655, 151653}},
    {"<|im_end|>\n<|im_start|>assistant\n", {151645, 198, 151644, 77091, 198}},
};

// The prompt of Qwen-Image's template; the ids from position 30.
const Case kInTemplate[] = {
    {"\nfoo", {198, 151644, 872, 271, 7975, 151645, 198, 151644, 77091, 198}},
    {"{braces} 100%",
     {198, 151644, 872, 198, 90, 1323, 2434, 92, 220, 16, 15, 15, 4, 151645, 198, 151644, 77091, 198}},
    {"你好，世界", {198, 151644, 872, 198, 108386, 3837, 99489, 151645, 198, 151644, 77091, 198}},
};

const Ids kImagePrefix = {151644, 8948, 198, 74785, 279, 2168,   553, 44193,  279, 1894,  11,    6083,
                          11,     1379, 11,  10434, 11,  12194,  11,  1467,   11,  27979, 11871, 315,
                          279,    6171, 323, 4004,  25,  151645, 198, 151644, 872, 198};

const Ids kEditPrefix = {151644, 8948, 198,  74785, 279,    1376, 4419,   315,   279,  1946, 2168,
                         320,    3423, 11,   6083,  11,     1379, 11,     10434, 11,   6171, 11,
                         4004,   701,  1221, 10339, 1246,   279,  1196,   594,   1467, 7600, 1265,
                         11596,  476,  5602, 279,   2168,   13,   19813,  264,   501,  2168, 429,
                         20027,  279,  1196, 594,   8502,   1393, 20337,  28137, 448,  279,  4024,
                         1946,   1380, 8311, 13,    151645, 198,  151644, 872,   198};

class PublishedTokenizer : public ::testing::Test {
 protected:
  static std::string folder() {
    const char* chosen = std::getenv("ORRERY_QWEN_TOKENIZER");
    return chosen && *chosen ? chosen : ORRERY_SOURCE_DIR "/tests/.cache/qwen-tokenizer";
  }

  static void SetUpTestSuite() {
    if (std::filesystem::exists(folder())) shared_.emplace(Tokenizer::open(folder()));
  }

  static void TearDownTestSuite() { shared_.reset(); }

  void SetUp() override {
    if (!shared_) GTEST_SKIP() << folder() << " is not there; scripts/fetch-tokenizer fetches it";
  }

  static Ids encode(const std::string& text) { return shared_->encode(text); }

  static inline std::optional<Tokenizer> shared_;
};

/// Qwen-Image's own string, which is what the chat template makes of this conversation.
std::string in_template(const std::string& system, const std::string& prompt) {
  const ChatMessage messages[] = {{"system", {{.text = system}}}, {"user", {{.text = prompt}}}};
  return render_chat(messages, {.add_generation_prompt = true});
}

std::string image_prompt(const std::string& prompt) {
  return in_template(
      "Describe the image by detailing the color, shape, size, texture, quantity, text, spatial "
      "relationships of the objects "
      "and background:",
      prompt);
}

TEST_F(PublishedTokenizer, Strings) {
  for (const auto& [text, ids] : kStrings) EXPECT_EQ(encode(text), ids) << '"' << text << '"';
}

TEST_F(PublishedTokenizer, ImageTemplate) {
  for (const auto& [prompt, ids] : kInTemplate) {
    const Ids all = encode(image_prompt(prompt));
    ASSERT_GT(all.size(), 30u);
    EXPECT_EQ(Ids(all.begin() + 30, all.end()), ids) << '"' << prompt << '"';
  }
  const Ids cat = encode(image_prompt("a cat"));
  EXPECT_EQ(Ids(cat.begin(), cat.begin() + 34), kImagePrefix);
  EXPECT_EQ(cat.size(), 41u);
  EXPECT_EQ(encode(image_prompt(" ")).size(), 40u);
  EXPECT_EQ(encode(image_prompt("")).size(), 39u);
}

TEST_F(PublishedTokenizer, EditTemplate) {
  const Ids ids =
      encode(in_template("Describe the key features of the input image (color, shape, size, texture, "
                         "objects, background), then explain how the "
                         "user's text instruction should alter or modify the image. Generate a new image "
                         "that meets the user's requirements while "
                         "maintaining consistency with the original input where appropriate.",
                         "x"));
  ASSERT_GT(ids.size(), kEditPrefix.size());
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(kEditPrefix.size())), kEditPrefix);
}

TEST_F(PublishedTokenizer, CosmosPrompt) {
  const Ids expected = {151644, 8948, 198,   2610, 525,    264, 10950,  17847, 879, 686, 3410, 50932,  311,
                        458,    2168, 13823, 13,   151645, 198, 151644, 872,   198, 64,  8251, 151645, 198};
  EXPECT_EQ(encode(render_cosmos_prompt("a cat")), expected);
}

TEST_F(PublishedTokenizer, Constants) {
  EXPECT_EQ(shared_->pad_id(), 151643);
  EXPECT_EQ(shared_->id_count(), 151665);
  EXPECT_EQ(shared_->model_max_length(), 131072);
}

}  // namespace
}  // namespace orrery::tokenizer
