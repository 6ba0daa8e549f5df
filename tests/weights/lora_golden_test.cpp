// LoRA files in every key format change a model as the reference changes it, and files that it must refuse
// are refused.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "orrery/weights/lora_merge.h"
#include "orrery/weights/source.h"
#include "tests/support/golden.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;

TEST(LoraGolden, EveryFormatHasItsModulesAndScale) {
  const auto folders = golden_folders("lora");
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders) {
    const auto base = open_weights((folder / "transformer").string());
    const Json cases = read_json(folder / "case.json")["cases"];
    ASSERT_FALSE(cases.empty());
    for (const auto& entry : cases) {
      const std::string name = entry["name"], path = (folder / entry["file"].get<std::string>()).string();
      const auto lora = open_lora(path);
      for (const auto& module : lora.modules) EXPECT_EQ(module.scale, entry["scale"]) << name << module.name;
      auto weights = base;
      merge_loras(weights, std::vector<LoraChoice>{{path}}, at::kFloat);
      size_t changed = 0;
      for (const auto& [key, t] : weights) changed += t.is_same(base.at(key)) ? 0 : 1;
      EXPECT_EQ(changed, entry["modules"].get<size_t>()) << name;
    }
  }
}

// Their codes, and what their messages must name.
struct Refusal {
  std::string code, part;
};
const std::map<std::string, Refusal> kRefusals = {
    {"reject_unknown_module.safetensors", {"unknown_key", "transformer.transformer_blocks.9.attn.to_q"}},
    {"reject_missing_up.safetensors",
     {"missing_key", "transformer_blocks.0.attn.to_q: expected two factors"}},
    {"reject_wrong_width.safetensors",
     {"invalid_shape", "transformer_blocks.0.attn.to_q: expected down [r, 16]"}},
};

TEST(LoraGolden, FilesToRejectAreRefusedAndChangeNothing) {
  const auto folders = golden_folders("lora");
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders) {
    const auto base = open_weights((folder / "transformer").string());
    const Json files = read_json(folder / "case.json").value("reject", Json::object());
    for (const auto& [name, reason] : files.items()) {
      SCOPED_TRACE(name);
      auto weights = base;
      const auto good = folder / read_json(folder / "case.json")["cases"][0]["file"].get<std::string>();
      const std::vector<LoraChoice> choices{{good.string()}, {(folder / name).string()}};
      const auto error = error_of([&] { merge_loras(weights, choices, at::kFloat); });
      EXPECT_EQ(error.kind(), ErrorKind::kCheckpoint);
      EXPECT_EQ(error.code(), kRefusals.at(name).code);
      EXPECT_THAT(error.message(), HasSubstr(kRefusals.at(name).part));
      EXPECT_THAT(error.message(), HasSubstr(name));
      for (const auto& [key, t] : weights) EXPECT_TRUE(t.is_same(base.at(key))) << key;
    }
  }
}

}  // namespace
}  // namespace orrery::weights
