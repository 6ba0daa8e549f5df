#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/models/qwen_vl/text_encoder.h"
#include "tests/models/qwen_vl_hash.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::qwen_vl {
namespace {

using testing::expect_error;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

TextConfig tiny_config() {
  return {.vocab_size = 64,
          .hidden_size = 32,
          .intermediate_size = 48,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .rms_norm_eps = 1e-6,
          .rope_theta = 1e6,
          .rope_sections = {1, 1, 2},
          .image_token = 55};
}

TextWeights tiny_weights() {
  TextWeights weights;
  HashFill fill("model.");
  bind(fill, weights, tiny_config());
  return weights;
}

std::vector<Tensor> states_of(const TextWeights& weights, const Ids& ids) {
  std::vector<Tensor> states;
  run_text(weights, tiny_config(), ids, at::kFloat,
           [&](int64_t, const Tensor& state) { states.push_back(state); });
  return states;
}

const Ids kIds = {3, 17, 42, 5, 63, 0, 8, 21};

TEST(QwenVlText, HashRule) {
  EXPECT_EQ(HashFill::fnv("input.x"), 0x037e0615u);
  EXPECT_DOUBLE_EQ(HashFill::unit(0x037e0615, 0), -0.8951670681126416);
  EXPECT_DOUBLE_EQ(HashFill::unit(0x037e0615, 3), 0.30489405477419496);
}

/// Spec qwen2.5-vl-text Part D, "Text".
TEST(QwenVlText, PrintedNumbers) {
  const Printed printed[] = {
      {1.172214,
       2.994641,
       {0.217866f, 0.158668f, 0.201522f, -0.045450f},
       {0.025408f, 0.086656f, -0.101405f, 0.056887f}},
      {-8.624307,
       14.607932,
       {0.928611f, 0.701321f, 0.399499f, -0.620282f, -0.628200f, 1.296963f, 1.024479f, -0.072839f},
       {-0.411527f, -0.528929f, 2.017038f, 0.601490f}},
      {-101.844510,
       16.138673,
       {0.469631f, 1.260726f, 0.485853f, -0.061018f, -0.429509f, 0.115526f, -0.631510f, -0.590329f},
       {0.359454f, -0.607673f, 1.537810f, -0.471540f}}};
  const auto states = states_of(tiny_weights(), kIds);
  ASSERT_EQ(states.size(), 3u);
  for (size_t i = 0; i < states.size(); ++i) {
    SCOPED_TRACE(i);
    expect_printed(states[i], printed[i]);
  }
}

const Ids kMixed = {10, 11, 2, 55, 55, 55, 55, 55, 55, 3, 12, 13};

EncodedImage two_by_three() { return {hashed("input.image_embeds", {6, 32}, std::sqrt(3.0)), {2, 3}}; }

/// The same, "Mixed".
TEST(QwenVlText, PrintedNumbersWithAPicture) {
  const EncodedImage image = two_by_three();
  const auto weights = tiny_weights();
  const TextInput input = text_input(weights, tiny_config(), kMixed, {&image, 1}, at::kFloat);
  EXPECT_EQ(longs(input.positions),
            (std::vector<int64_t>{0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7, 8, 0, 1, 2, 3, 3, 3,
                                  4, 4, 4, 6, 7, 8, 0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(input.embeddings.slice(0, 3, 9).equal(image.rows));
  std::vector<Tensor> states;
  run_text(weights, tiny_config(), input, [&](int64_t, const Tensor& state) { states.push_back(state); });
  ASSERT_EQ(states.size(), 3u);
  expect_printed(states[1], {-16.144476, 21.797020, {-0.161008f, 1.422831f, 1.532318f, -0.388439f}, {}});
  expect_printed(states[2], {-10.306506,
                             19.736500,
                             {0.556542f, 1.292489f, 1.850597f, 0.261069f},
                             {0.209541f, 1.171825f, 0.982924f, -1.080194f}});
  EXPECT_TRUE(last_hidden_state(weights, tiny_config(), input).equal(states[2]));
}

/// Spec §7.6, the example with two pictures.
TEST(QwenVlText, PositionsOfTwoPictures) {
  const Ids ids = {1, 1, 2, 55, 55, 55, 55, 55, 55, 3, 1, 1, 2, 55, 55, 55, 55, 3, 1};
  const EncodedImage images[] = {two_by_three(), {hashed("input.image_embeds", {4, 32}, 1), {2, 2}}};
  const auto positions = text_input(tiny_weights(), tiny_config(), ids, images, at::kFloat).positions;
  EXPECT_EQ(longs(positions[0]),
            (std::vector<int64_t>{0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7, 8, 9, 10, 10, 10, 10, 12, 13}));
  EXPECT_EQ(longs(positions[1]),
            (std::vector<int64_t>{0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7, 8, 9, 10, 10, 11, 11, 12, 13}));
  EXPECT_EQ(longs(positions[2]),
            (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 8, 9, 10, 11, 10, 11, 12, 13}));
}

TEST(QwenVlText, WithoutPicturesTheirTokenIsOneLikeOthers) {
  const auto weights = tiny_weights();
  const auto input = text_input(weights, tiny_config(), kMixed, {}, at::kFloat);
  EXPECT_TRUE(input.embeddings[3].equal(weights.embedding[55]));
  EXPECT_EQ(longs(input.positions[2]), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(QwenVlText, RefusesPicturesThatDoNotFitTheText) {
  const auto weights = tiny_weights();
  const auto input = [&](const TextConfig& config, const Ids& ids, const std::vector<EncodedImage>& images) {
    return text_input(weights, config, ids, images, at::kFloat);
  };
  const EncodedImage image = two_by_three();
  expect_error(ErrorKind::kRequest, "2 places for the 6 rows of picture 1", [&] {
    input(tiny_config(), {1, 55, 55, 1, 55, 55, 55, 55}, {image});
  });
  expect_error(ErrorKind::kRequest, "places for 1 of the 2 pictures", [&] {
    input(tiny_config(), kMixed, {image, image});
  });
  Ids seven = kMixed;
  seven.insert(seven.begin() + 3, 55);
  expect_error(ErrorKind::kRequest, "more pictures than the 1",
               [&] { input(tiny_config(), seven, {image}); });
  TextConfig plain = tiny_config();
  plain.rope_sections = {};
  expect_error(ErrorKind::kCheckpoint, "mrope_section", [&] { input(plain, kMixed, {image}); });
  expect_error(ErrorKind::kCheckpoint, "rows of 16; the text decoder takes 32", [&] {
    input(tiny_config(), kMixed, {{image.rows.slice(1, 0, 16), image.grid}});
  });
}

TEST(QwenVlText, APrefixGivesThePrefix) {
  const auto weights = tiny_weights();
  const auto whole = states_of(weights, kIds).back();
  const auto part = states_of(weights, Ids(kIds.begin(), kIds.begin() + 5)).back();
  EXPECT_LE((part - whole.slice(0, 0, 5)).abs().max().item<double>(), 2e-6);
}

TEST(QwenVlText, EmbeddingsAreNormalisedStates) {
  const auto weights = tiny_weights();
  const auto config = tiny_config();
  const auto embeddings = cosmos_embeddings(weights, config, kIds, at::kFloat);
  ASSERT_EQ(embeddings.sizes(), at::IntArrayRef({8, 64}));
  const auto layers = embeddings.unflatten(1, {2, 32});
  EXPECT_LE(layers.mean(-1).abs().max().item<double>(), 1e-6);
  EXPECT_LE((layers.std(-1, /*unbiased=*/true) - 1).abs().max().item<double>(), 1e-6);
  const auto state = states_of(weights, kIds)[1];
  const auto expected = (state - state.mean(-1, true)) / state.std(-1, true, true);
  EXPECT_LE((layers.select(1, 0) - expected).abs().max().item<double>(), 1e-6);
}

TEST(QwenVlText, BfloatIsNear) {
  const auto weights = tiny_weights();
  const auto exact = cosmos_embeddings(weights, tiny_config(), kIds, at::kFloat);
  const auto coarse = cosmos_embeddings(weights, tiny_config(), kIds, at::kBFloat16);
  EXPECT_EQ(coarse.scalar_type(), at::kBFloat16);
  const double off = (coarse.to(at::kFloat) - exact).pow(2).mean().sqrt().item<double>();
  EXPECT_LT(off, 0.03);  // of values with deviation 1: a few roundings of 2⁻⁹ in each of two layers
  EXPECT_GT(off, 0);
}

TEST(QwenVlText, ReadsOnlyTheRowsInUse) {
  auto weights = tiny_weights();
  const auto expected = states_of(weights, kIds).back();
  auto table = weights.embedding.clone();
  for (int64_t row = 0; row < table.size(0); ++row)
    if (std::find(kIds.begin(), kIds.end(), row) == kIds.end()) table[row].fill_(NAN);
  weights.embedding = table;
  EXPECT_TRUE(states_of(weights, kIds).back().equal(expected));
}

TEST(QwenVlText, RefusesIdsWithoutARow) {
  const auto weights = tiny_weights();
  expect_error(ErrorKind::kRequest, "no tokens", [&] { states_of(weights, {}); });
  expect_error(ErrorKind::kRequest, "token 64", [&] { states_of(weights, {64}); });
  expect_error(ErrorKind::kRequest, "token -1", [&] { states_of(weights, {3, -1}); });
}

class QwenVlConfig : public ::testing::Test {
 protected:
  TextConfig read(const Json& json) {
    std::ofstream(folder_ / "config.json") << json.dump();
    return read_text_config(folder_ / "config.json");
  }

  testing::TempDir folder_;
  Json flat_ = {{"vocab_size", 64},           {"hidden_size", 32},        {"intermediate_size", 48},
                {"num_hidden_layers", 2},     {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                {"rms_norm_eps", 1e-6},       {"rope_theta", 5e5},        {"hidden_act", "silu"},
                {"use_sliding_window", false}};
};

TEST_F(QwenVlConfig, FlatNestedAndMixed) {
  flat_["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {1, 1, 2}}};
  const TextConfig flat = read(flat_);
  EXPECT_EQ(flat.rope_sections, (std::array<int64_t, 3>{1, 1, 2}));
  EXPECT_EQ(flat.image_token, 151655);
  EXPECT_EQ(flat.head_dim, 8);
  EXPECT_EQ(flat.kv_heads, 2);
  EXPECT_EQ(flat.rope_theta, 5e5);
  EXPECT_EQ(flat.rms_norm_eps, 1e-6);

  Json inner = flat_;
  inner.erase("rope_theta");
  inner.erase("rope_scaling");
  inner["rope_parameters"] = {{"rope_theta", 2e5}, {"rope_type", "default"}, {"mrope_section", {2, 3, 3}}};
  inner["head_dim"] = 16;
  inner["image_token_id"] = 61;
  const TextConfig nested = read({{"text_config", inner}});
  EXPECT_EQ(nested.rope_theta, 2e5);
  EXPECT_EQ(nested.head_dim, 16);
  EXPECT_EQ(nested.rope_sections, (std::array<int64_t, 3>{2, 3, 3}));
  EXPECT_EQ(nested.image_token, 61);

  Json both = flat_;
  both.erase("rope_scaling");
  both["text_config"] = {{"hidden_size", 64}, {"vocab_size", nullptr}, {"rope_theta", 3e5}};
  both["rope_parameters"] = {{"rope_theta", 7e5}};
  const TextConfig mixed = read(both);
  EXPECT_EQ(mixed.hidden_size, 64);
  EXPECT_EQ(mixed.vocab_size, 64);
  EXPECT_EQ(mixed.rope_theta, 3e5);
  EXPECT_EQ(mixed.rope_sections, (std::array<int64_t, 3>{}));

  flat_.erase("rope_theta");
  flat_.erase("rms_norm_eps");
  EXPECT_EQ(read(flat_).rope_theta, 1e6);
  EXPECT_EQ(read(flat_).rms_norm_eps, 1e-5);
}

TEST_F(QwenVlConfig, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, Json> wrong[] = {{"hidden_size", nullptr},
                                                {"num_hidden_layers", 1e12},
                                                {"num_hidden_layers", int64_t{1} << 40},
                                                {"vocab_size", "64"},
                                                {"num_attention_heads", 0},
                                                {"rms_norm_eps", -1},
                                                {"rope_theta", "big"},
                                                {"image_token_id", -1},
                                                {"rope_scaling", {{"mrope_section", {1, 1, 1}}}},
                                                {"rope_scaling", {{"mrope_section", {4}}}}};
  for (const auto& [name, value] : wrong) {
    Json json = flat_;
    json[name] = value;
    expect_error(ErrorKind::kCheckpoint, value.is_object() ? "mrope_section" : name, [&] { read(json); });
  }
  flat_["num_key_value_heads"] = 3;
  expect_error(ErrorKind::kCheckpoint, "4 heads of 8 with 3 key heads", [&] { read(flat_); });
}

TEST_F(QwenVlConfig, NamesWhatIsNotSupported) {
  const std::pair<const char*, Json> unsupported[] = {
      {"hidden_act", "gelu"}, {"use_sliding_window", true}, {"rope_scaling", {{"rope_type", "yarn"}}}};
  for (const auto& [name, value] : unsupported) {
    Json json = flat_;
    json[name] = value;
    expect_error(ErrorKind::kUnsupported, name, [&] { read(json); });
  }
}

}  // namespace
}  // namespace orrery::qwen_vl
