#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "orrery/models/qwen_vl/text_encoder.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::qwen_vl {
namespace {

using testing::expect_error;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

/// Fills weights from names alone (spec qwen-image §11.2).
class HashFill final : public nn::Visitor<HashFill> {
 public:
  void tensor(const std::string& name, Tensor& t, const Shape& shape) {
    const std::string key = "model." + name;
    t = at::empty(shape, at::kFloat);
    const double fan_in = static_cast<double>(t.numel()) / static_cast<double>(t.size(0));
    const bool bias = name.ends_with(".bias"), norm = t.dim() == 1 && name.ends_with(".weight");
    const double base = norm ? 1 : 0, amplitude = bias || norm ? 0.1 : std::sqrt(3 / fan_in);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.data_ptr<float>()[i] =
          static_cast<float>(base + amplitude * unit(fnv(key), static_cast<uint32_t>(i)));
  }

  static uint32_t fnv(const std::string& key) {
    uint32_t hash = 0x811C9DC5;
    for (const char c : key) hash = (hash ^ static_cast<uint8_t>(c)) * 0x01000193;
    return hash;
  }

  static double unit(uint32_t hash, uint32_t i) {
    uint32_t x = hash + i * 0x9E3779B9;
    x = (x ^ x >> 16) * 0x85EBCA6B;
    x = (x ^ x >> 13) * 0xC2B2AE35;
    return static_cast<double>(x ^ x >> 16) / 2147483648.0 - 1;
  }
};

TextConfig tiny_config() {
  return {.vocab_size = 64,
          .hidden_size = 32,
          .intermediate_size = 48,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .rms_norm_eps = 1e-6,
          .rope_theta = 1e6};
}

TextWeights tiny_weights() {
  TextWeights weights;
  HashFill fill;
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

struct Printed {
  double sum, norm;
  std::vector<float> first, last;
};

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
    const Tensor flat = states[i].flatten();
    EXPECT_NEAR(flat.sum(at::kDouble).item<double>(), printed[i].sum, 3e-4);
    EXPECT_NEAR(flat.to(at::kDouble).norm().item<double>(), printed[i].norm, 3e-5);
    for (size_t j = 0; j < printed[i].first.size(); ++j)
      EXPECT_NEAR(flat[static_cast<int64_t>(j)].item<float>(), printed[i].first[j], 1e-5);
    for (int64_t j = 0; j < 4; ++j)
      EXPECT_NEAR(flat[flat.numel() - 4 + j].item<float>(), printed[i].last[static_cast<size_t>(j)], 1e-5);
  }
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
  EXPECT_EQ(flat.head_dim, 8);
  EXPECT_EQ(flat.kv_heads, 2);
  EXPECT_EQ(flat.rope_theta, 5e5);
  EXPECT_EQ(flat.rms_norm_eps, 1e-6);

  Json inner = flat_;
  inner.erase("rope_theta");
  inner["rope_parameters"] = {{"rope_theta", 2e5}, {"rope_type", "default"}};
  inner["head_dim"] = 16;
  const TextConfig nested = read({{"text_config", inner}});
  EXPECT_EQ(nested.rope_theta, 2e5);
  EXPECT_EQ(nested.head_dim, 16);

  Json both = flat_;
  both["text_config"] = {{"hidden_size", 64}, {"vocab_size", nullptr}, {"rope_theta", 3e5}};
  both["rope_parameters"] = {{"rope_theta", 7e5}};
  const TextConfig mixed = read(both);
  EXPECT_EQ(mixed.hidden_size, 64);
  EXPECT_EQ(mixed.vocab_size, 64);
  EXPECT_EQ(mixed.rope_theta, 3e5);

  flat_.erase("rope_theta");
  flat_.erase("rms_norm_eps");
  EXPECT_EQ(read(flat_).rope_theta, 1e6);
  EXPECT_EQ(read(flat_).rms_norm_eps, 1e-5);
}

TEST_F(QwenVlConfig, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, Json> wrong[] = {
      {"hidden_size", nullptr}, {"num_hidden_layers", 1e12}, {"num_hidden_layers", int64_t{1} << 40},
      {"vocab_size", "64"},     {"num_attention_heads", 0},  {"rms_norm_eps", -1},
      {"rope_theta", "big"}};
  for (const auto& [name, value] : wrong) {
    Json json = flat_;
    json[name] = value;
    expect_error(ErrorKind::kCheckpoint, name, [&] { read(json); });
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
