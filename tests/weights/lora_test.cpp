#include "orrery/weights/lora.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>

#include "orrery/weights/lora_key.h"
#include "orrery/weights/safetensors.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;

constexpr int64_t kRank = 2;

TensorMap factors(const std::string& down, const std::string& up) {
  return {{down, at::ones({kRank, 6})}, {up, at::ones({4, kRank})}};
}

/// Written as NAME.safetensors and opened.
Lora opened(const TempDir& folder, const TensorMap& tensors,
            const std::map<std::string, std::string>& metadata = {}) {
  write_safetensors(folder / "x.safetensors", tensors, metadata);
  return open_lora(folder / "x.safetensors");
}

/// The code of the Error that opening ends with; its message names the file.
std::string refusal(const TensorMap& tensors, const std::map<std::string, std::string>& metadata = {}) {
  const TempDir folder;
  const auto error = error_of([&] { opened(folder, tensors, metadata); });
  EXPECT_THAT(error.message(), HasSubstr("x.safetensors"));
  return error.code();
}

TEST(Lora, ReadsEverySpellingOfTheFactors) {
  const std::pair<const char*, const char*> spellings[] = {
      {"a.b.0.lora_A.weight", "a.b.0.lora_B.weight"},
      {"a.b.0.lora_A.default.weight", "a.b.0.lora_B.default.weight"},
      {"a.b.0.lora_down.weight", "a.b.0.lora_up.weight"},
      {"a.b.0.lora.down.weight", "a.b.0.lora.up.weight"},
      {"a.b.0.lora_linear_layer.down.weight", "a.b.0.lora_linear_layer.up.weight"},
  };
  for (const auto& [down, up] : spellings) {
    const TempDir folder;
    const auto lora = opened(folder, factors(down, up));
    ASSERT_EQ(lora.modules.size(), 1U) << down;
    EXPECT_EQ(lora.modules[0].name, "a.b.0") << down;
    EXPECT_EQ(lora.modules[0].down.sizes(), (Shape{kRank, 6})) << down;
    EXPECT_EQ(lora.modules[0].up.sizes(), (Shape{4, kRank})) << down;
    EXPECT_EQ(lora.modules[0].scale, 1) << down;
  }
}

TEST(Lora, StripsThePrefixesOfOtherPrograms) {
  for (const char* name : {"transformer.a.b", "diffusion_model.a.b", "model.diffusion_model.a.b", "net.a.b",
                           "base_model.model.a.b", "base_model.model.transformer.a.b", "a.b"})
    EXPECT_EQ(bare_module(name), "a.b") << name;
  EXPECT_EQ(bare_module("lora_unet_a_b"), "a_b");
  EXPECT_EQ(bare_module("transformer_blocks.0.a"), "transformer_blocks.0.a");
}

TEST(Lora, TakesTheScaleFromTheNearestSource) {
  const auto scale = [](const Tensor& alpha, const std::map<std::string, std::string>& metadata) {
    const TempDir folder;
    auto tensors = factors("transformer.a.q.lora_A.weight", "transformer.a.q.lora_B.weight");
    if (alpha.defined()) tensors["transformer.a.q.alpha"] = alpha;
    return opened(folder, tensors, metadata).modules.at(0).scale;
  };
  const auto config = [](const std::string& json) {
    return std::map<std::string, std::string>{{"lora_adapter_metadata", json}};
  };
  EXPECT_EQ(scale({}, {}), 1);
  EXPECT_EQ(scale(at::scalar_tensor(8.0), {}), 4);
  EXPECT_EQ(scale(at::full({1}, 3, at::kBFloat16), {}), 1.5);
  EXPECT_EQ(scale({}, config(R"({"transformer.lora_alpha": 8, "transformer.r": 2})")), 4);
  EXPECT_EQ(scale({}, config(R"({"lora_alpha": 3, "r": 2})")), 1.5);
  EXPECT_EQ(scale({}, config(R"({"text_encoder.lora_alpha": 3})")), 1);
  EXPECT_DOUBLE_EQ(scale({}, config(R"({"lora_alpha": 8, "use_rslora": true})")), 8 / std::sqrt(2.0));
  EXPECT_EQ(scale({}, config(R"({"lora_alpha": 8, "alpha_pattern": {"q": 2, "k": 6}})")), 1);
  EXPECT_EQ(scale({}, config(R"({"lora_alpha": 8, "alpha_pattern": {"^q": 2}})")), 4) << "the whole name";
  EXPECT_EQ(scale({}, config(R"({"lora_alpha": 8, "alpha_pattern": {"^a.q": 2}})")), 1);
  EXPECT_EQ(scale(at::scalar_tensor(2.0), config(R"({"lora_alpha": 8})")), 1) << "the module's own alpha";
}

TEST(Lora, OpensTheFoldersOfDiffusersAndPeft) {
  const TempDir folder;
  EXPECT_EQ(code_of([&] { open_lora(folder.path()); }), "missing_file");
  EXPECT_EQ(code_of([&] { open_lora(folder / "none.safetensors"); }), "missing_file");
  EXPECT_EQ(code_of([&] { open_lora(folder / "none.ckpt"); }), "unsupported");
  write_safetensors(folder / "style.safetensors", factors("style.lora_A.weight", "style.lora_B.weight"));
  EXPECT_EQ(open_lora(folder.path()).modules[0].name, "style");
  const std::string peft = "base_model.model.peft";
  write_safetensors(folder / "adapter_model.safetensors",
                    factors(peft + ".lora_A.weight", peft + ".lora_B.weight"));
  write(folder, "adapter_config.json", R"({"r": 2, "lora_alpha": 6, "peft_type": "LORA"})");
  EXPECT_EQ(open_lora(folder.path()).modules[0].name, peft);
  EXPECT_EQ(open_lora(folder.path()).modules[0].scale, 3);
  write_safetensors(folder / "pytorch_lora_weights.safetensors",
                    factors("d.lora_A.weight", "d.lora_B.weight"));
  EXPECT_EQ(open_lora(folder.path()).modules[0].name, "d");
  EXPECT_EQ(open_lora(folder.path()).modules[0].scale, 1) << "the configuration is the other file's";
}

TEST(Lora, RefusesAdaptersOfOtherKindsByName) {
  for (const auto& [key, kind] :
       std::map<std::string, std::string>{{"a.dora_scale", "DoRA"},
                                          {"a.lora_magnitude_vector", "DoRA"},
                                          {"lora_unet_a.lokr_w1", "LoKr"},
                                          {"a.hada_w1_a", "LoHa"},
                                          {"a.oft_blocks", "OFT"},
                                          {"a.lora_mid.weight", "Tucker"},
                                          {"diffusion_model.a.diff", "difference"},
                                          {"diffusion_model.a.diff_b", "difference"},
                                          {"a.lora_B.bias", "biases"},
                                          {"net.a.base_layer.weight", "checkpoint"}}) {
    const TempDir folder;
    auto tensors = factors("a.lora_A.weight", "a.lora_B.weight");
    tensors[key] = at::ones({kRank});
    const auto error = error_of([&] { opened(folder, tensors); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << key;
    EXPECT_THAT(error.message(), HasSubstr(key));
    EXPECT_THAT(error.message(), HasSubstr(kind));
  }
  EXPECT_EQ(refusal(factors("a.lora_A.weight", "a.lora_B.weight"),
                    {{"lora_adapter_metadata", R"({"lora_alpha": 2, "use_dora": true})"}}),
            "unsupported");
}

TEST(Lora, RefusesWhatIsNotWhole) {
  const Tensor down = at::ones({kRank, 6}), up = at::ones({4, kRank}), one = at::scalar_tensor(1.0);
  const std::string a = "m.lora_A.weight", b = "m.lora_B.weight", alpha = "m.alpha";
  EXPECT_EQ(refusal({}), "missing_key");
  EXPECT_EQ(refusal({{a, down}}), "missing_key");
  EXPECT_EQ(refusal({{b, up}}), "missing_key");
  EXPECT_EQ(refusal({{a, down}, {b, up}, {"n.alpha", one}}), "missing_key");
  for (const char* key :
       {"m.weight", "m.lora_C.weight", ".lora_A.weight", "m.lora_A", "m.lora_A.x.y.weight", ""})
    EXPECT_EQ(refusal({{a, down}, {b, up}, {key, down}}), "unknown_key") << key;
  EXPECT_EQ(refusal({{a, down}, {b, up}, {"m.lora_A.second.weight", down}}), "duplicate_key");
  EXPECT_EQ(refusal({{a, at::ones({3, 6})}, {b, up}}), "invalid_shape") << "two ranks";
  EXPECT_EQ(refusal({{a, at::ones({0, 6})}, {b, at::ones({4, 0})}}), "invalid_shape") << "rank 0";
  EXPECT_EQ(refusal({{a, at::ones({kRank, 6, 1, 1})}, {b, at::ones({4, kRank, 1, 1})}}), "invalid_shape");
  EXPECT_EQ(refusal({{a, down.to(at::kInt)}, {b, up}}), "invalid_tensor");
  for (double bad : {std::nan(""), HUGE_VAL})
    EXPECT_EQ(refusal({{a, down}, {b, up}, {alpha, at::scalar_tensor(bad)}}), "invalid_tensor") << bad;
  EXPECT_EQ(refusal({{a, down}, {b, up}, {alpha, at::ones({2})}}), "invalid_tensor");
  for (const char* json : {"[", "[]", R"({"lora_alpha": "8"})", R"({"lora_alpha": 8, "alpha_pattern": 3})",
                           R"({"lora_alpha": 8, "alpha_pattern": {"m": null}})", R"({"use_rslora": 1})"})
    EXPECT_EQ(refusal({{a, down}, {b, up}}, {{"lora_adapter_metadata", json}}), "invalid_header") << json;
}

TEST(Lora, RefusesBrokenFilesAndClaimsThatTheyCannotKeep) {
  const TempDir folder;
  write_safetensors(folder / "whole.safetensors", factors("m.lora_A.weight", "m.lora_B.weight"));
  std::ifstream in(folder / "whole.safetensors", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (size_t length : {size_t{0}, size_t{7}, size_t{40}, whole.size() - 1})
    EXPECT_EQ(code_of([&] { open_lora(write(folder, "x.safetensors", whole.substr(0, length))); }),
              "truncated");

  // A rank of 2⁴⁰ costs no bytes beside a width of 0, and nothing may be computed with it.
  const std::string json =
      R"({"m.lora_A.weight":{"dtype":"F32","shape":[1099511627776,0],"data_offsets":[0,0]},)"
      R"("m.lora_B.weight":{"dtype":"F32","shape":[0,1099511627776],"data_offsets":[0,0]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(json.size());
  ASSERT_LT(json.size(), 256U);
  const auto lora = open_lora(write(folder, "huge.safetensors", length + json));
  EXPECT_EQ(lora.modules[0].down.numel(), 0) << "merging refuses the width: lora_merge_test.cpp";
}

TEST(Lora, ChoicesHaveAStrengthBehindAColonOrAnEqualsSign) {
  const auto expect = [](const char* text, const std::string& path, double strength) {
    const auto choice = parse_lora_choice(text);
    EXPECT_EQ(choice.path, path) << text;
    EXPECT_EQ(choice.strength, strength) << text;
  };
  expect("a.safetensors", "a.safetensors", 1);
  expect("a.safetensors:0.5", "a.safetensors", 0.5);
  expect("a.safetensors=-1", "a.safetensors", -1);
  expect("a:b.safetensors", "a:b.safetensors", 1);
  expect("a:2:b=0.25", "a:2:b", 0.25);
  expect("a=1x", "a=1x", 1);
  expect("a:", "a:", 1);
  for (const char* bad : {"", ":0.5", "a:nan", "a=inf", "a:1e999"})
    EXPECT_EQ(error_of([&] { parse_lora_choice(bad); }).kind(), ErrorKind::kRequest) << bad;
}

}  // namespace
}  // namespace orrery::weights
