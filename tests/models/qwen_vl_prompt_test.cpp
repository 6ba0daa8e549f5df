// Qwen-Image's templates (spec qwen-image §8.1), with the published vocabulary where scripts/fetch-tokenizer
// put it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "orrery/models/qwen_vl/image_prompt.h"
#include "tests/support/expect_error.h"

namespace orrery::qwen_vl {
namespace {

using Ids = std::vector<int32_t>;
constexpr int64_t kImagePad = 151655;

const std::string kEditStart =
    "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, texture, objects, "
    "background), then explain how the user's text instruction should alter or modify the image. Generate a "
    "new "
    "image that meets the user's requirements while maintaining consistency with the original input where "
    "appropriate.<|im_end|>\n<|im_start|>user\n";
const std::string kPicture = "<|vision_start|><|image_pad|><|vision_end|>";
const std::string kEnd = "<|im_end|>\n<|im_start|>assistant\n";

TEST(QwenImageTemplate, AsPublished) {
  EXPECT_EQ(
      render_image_prompt(PromptTemplate::kText, "{} 100%", 0),
      "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, quantity, text, "
      "spatial relationships of the objects and background:<|im_end|>\n<|im_start|>user\n{} 100%" +
          kEnd);
  EXPECT_EQ(render_image_prompt(PromptTemplate::kEdit, "a cat", 1), kEditStart + kPicture + "a cat" + kEnd);
  EXPECT_EQ(render_image_prompt(PromptTemplate::kEditPlus, "a cat", 1),
            kEditStart + "Picture 1: " + kPicture + "a cat" + kEnd);
  EXPECT_EQ(render_image_prompt(PromptTemplate::kEditPlus, "", 2),
            kEditStart + "Picture 1: " + kPicture + "Picture 2: " + kPicture + kEnd);
}

TEST(QwenImageTemplate, PlaceholdersBecomeRows) {
  const Grid grids[] = {{2, 3}, {1, 1}};
  EXPECT_EQ(expand_placeholders(Ids{5, 9, 6, 9, 7}, 9, grids), (Ids{5, 9, 9, 9, 9, 9, 9, 6, 9, 7}));
  EXPECT_EQ(expand_placeholders(Ids{5, 6}, 9, {}), (Ids{5, 6}));
  testing::expect_error(ErrorKind::kRequest, "1 places for pictures (<|image_pad|>), 2 given", [&] {
    expand_placeholders(Ids{5, 9}, 9, grids);
  });
}

class QwenImagePrompt : public ::testing::Test {
 protected:
  static std::string folder() {
    const char* chosen = std::getenv("ORRERY_QWEN_TOKENIZER");
    return chosen && *chosen ? chosen : ORRERY_SOURCE_DIR "/tests/.cache/qwen-tokenizer";
  }

  static void SetUpTestSuite() {
    if (std::filesystem::exists(folder())) shared_.emplace(tokenizer::Tokenizer::open(folder()));
  }

  static void TearDownTestSuite() { shared_.reset(); }

  void SetUp() override {
    if (!shared_) GTEST_SKIP() << folder() << " is not there; scripts/fetch-tokenizer fetches it";
  }

  static ImagePromptIds ids_of(PromptTemplate kind, const std::string& prompt, std::vector<Grid> grids = {},
                               int64_t max_tokens = 512) {
    return image_prompt_ids(*shared_, kImagePad, prompt, grids, kind, max_tokens);
  }

  /// What is kept.
  static Ids kept(const ImagePromptIds& ids) { return {ids.ids.begin() + ids.prefix, ids.ids.end()}; }

  static inline std::optional<tokenizer::Tokenizer> shared_;
  const Ids end_ = {151645, 198, 151644, 77091, 198};
};

TEST_F(QwenImagePrompt, PrefixGoesAndSuffixStays) {
  Ids expected = {64, 8251};
  expected.insert(expected.end(), end_.begin(), end_.end());
  const auto cat = ids_of(PromptTemplate::kText, "a cat");
  EXPECT_EQ(cat.prefix, 34);
  EXPECT_EQ(cat.kept, 7);
  EXPECT_EQ(cat.dropped, 0);
  EXPECT_EQ(kept(cat), expected);
  EXPECT_EQ(kept(ids_of(PromptTemplate::kText, "")), end_);

  const auto edit = ids_of(PromptTemplate::kEdit, "a cat", {{1, 2}});
  EXPECT_EQ(edit.prefix, 64);
  expected.insert(expected.begin(), {151652, 151655, 151655, 151653});
  EXPECT_EQ(kept(edit), expected);
  const auto plus = ids_of(PromptTemplate::kEditPlus, "a cat", {{1, 2}});
  EXPECT_EQ(plus.prefix, 64);
  expected.insert(expected.begin(), {24669, 220, 16, 25, 220});
  EXPECT_EQ(kept(plus), expected);
}

/// The newline of the template and the prompt's own are one token, which is dropped with the prefix.
TEST_F(QwenImagePrompt, NewlineInFront) {
  Ids expected = {7975};
  expected.insert(expected.end(), end_.begin(), end_.end());
  const auto ids = ids_of(PromptTemplate::kText, "\nfoo");
  EXPECT_EQ(ids.ids[33], 271);
  EXPECT_EQ(kept(ids), expected);
}

TEST_F(QwenImagePrompt, SpecialTokensInThePromptAreSpecial) {
  EXPECT_EQ(kept(ids_of(PromptTemplate::kText, "<|im_end|> <|image_pad|>")),
            (Ids{151645, 220, 151655, 151645, 198, 151644, 77091, 198}));
  testing::expect_error(ErrorKind::kRequest, "2 places for pictures", [] {
    ids_of(PromptTemplate::kEdit, "<|image_pad|>", {{1, 1}});
  });
}

TEST_F(QwenImagePrompt, LongPromptsLoseTheirEnd) {
  std::string digits(600, '1');  // one token each
  const auto cut = ids_of(PromptTemplate::kText, digits);
  EXPECT_EQ(cut.ids.size(), 34u + 512u);
  EXPECT_EQ(cut.kept, 512);
  EXPECT_EQ(cut.dropped, 600 + 5 - 512);
  const auto whole = ids_of(PromptTemplate::kText, digits, {}, 1024);
  EXPECT_EQ(whole.kept, 605);
  EXPECT_EQ(whole.dropped, 0);
  const auto edit = ids_of(PromptTemplate::kEdit, digits, {{14, 14}});
  EXPECT_EQ(edit.kept, 1 + 196 + 1 + 605);
  EXPECT_EQ(edit.dropped, 0);
}

}  // namespace
}  // namespace orrery::qwen_vl
