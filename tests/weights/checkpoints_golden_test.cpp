// Checkpoints in the layouts in which models are published hold the same tensors under the canonical names.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "orrery/weights/visitors.h"
#include "tests/support/golden.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;

// float16 files: the rounding of a weight of size 2.
constexpr double kHalfRounding = 1e-3;

/// Loads the tensors as a model whose weights are `expected` does; every Error of the way is let through.
TensorMap load_as(const TensorMap& expected, TensorMap tensors, const std::string& origin,
                  Loader::Spelling spelling = {}) {
  Loader loader(std::move(tensors), at::kFloat, Storage::kWidened, origin, std::move(spelling));
  TensorMap loaded;
  for (const auto& [name, t] : expected) loader.tensor(name, loaded[name], t.sizes().vec());
  loader.finish();
  return loaded;
}

void expect_same(const TensorMap& got, const TensorMap& expected, double tolerance,
                 const std::string& where) {
  ASSERT_EQ(got.size(), expected.size()) << where;
  for (const auto& [name, t] : expected) {
    const Tensor wide = t.to(at::kFloat);
    if (tolerance == 0) {
      EXPECT_TRUE(at::equal(got.at(name), wide)) << where << ": " << name;
    } else {
      EXPECT_LE(max_abs(got.at(name), wide), tolerance) << where << ": " << name;
    }
  }
}

/// The golden folders of a topic that hold this part; at least one must.
std::vector<fs::path> folders_with(const std::string& topic, const std::string& part) {
  auto folders = golden_folders(topic);
  std::erase_if(folders, [&](const fs::path& folder) { return !fs::exists(folder / part); });
  EXPECT_FALSE(folders.empty()) << "no golden data with " << topic << "/" << part;
  return folders;
}

TEST(OfficialGolden, CosmosFilesHoldTheDiffusersTensors) {
  for (const auto& folder : folders_with("checkpoints", "official")) {
    const auto expected = read_tensors(folder / "transformer/diffusion_pytorch_model.safetensors");
    expect_same(load_as(expected, cosmos_names(open_weights(folder / "transformer")), "transformer"),
                expected, 0, "transformer");
    const Json files = read_json(folder / "case.json")["files"];
    for (const auto& [name, note] : files.items()) {
      SCOPED_TRACE((folder / "official" / name).string());
      const auto load = [&, file = name] {
        return load_as(expected, cosmos_names(open_weights(folder / "official" / file)), file,
                       official_cosmos_name);
      };
      if (note.get<std::string>().starts_with("REJECT")) {
        const auto error = error_of(load);
        EXPECT_THAT(error.code(), ::testing::AnyOf("missing_key", "invalid_shape", "unsupported"));
        // The note names the tensor at fault, if it is one.
        const auto text = note.get<std::string>();
        if (const auto at = text.find("net."); at != text.npos) {
          EXPECT_THAT(error.message(), HasSubstr(text.substr(at, text.find(' ', at) - at)));
        }
      } else if (name == "unknown_key.pt") {
        EXPECT_EQ(code_of(load), "unknown_key");
      } else {
        const bool half = name.find("half") != name.npos;
        expect_same(load(), expected, half ? kHalfRounding : 0, name);
      }
    }
  }
}

TEST(OfficialGolden, WanVaeHoldsTheDiffusersTensors) {
  for (const auto& folder : folders_with("wan_vae", "tokenizer.pth")) {
    const auto expected = read_tensors(folder / "vae/diffusion_pytorch_model.safetensors");
    expect_same(load_as(expected, wan_vae_names(open_weights(folder / "vae")), "vae"), expected, 0, "vae");
    expect_same(load_as(expected, wan_vae_names(open_weights(folder / "tokenizer.pth")), "tokenizer.pth"),
                expected, 0, "tokenizer.pth");
  }
}

TEST(OfficialGolden, TextEncoderLayoutsHoldTheSameTensors) {
  for (const auto& folder : folders_with("text_encoder", "text_encoder_flat")) {
    const auto flat = qwen_vl_names(open_weights(folder / "text_encoder_flat"));
    EXPECT_TRUE(flat.contains("embed_tokens.weight"));
    EXPECT_TRUE(flat.contains("layers.0.self_attn.q_proj.bias"));
    EXPECT_TRUE(flat.contains("norm.weight"));
    for (const auto& [name, t] : flat)
      EXPECT_THAT(name, ::testing::ContainsRegex("^(embed_tokens|layers|norm|visual)\\.")) << "one spelling";
    for (const char* other : {"text_encoder_nested", "text_encoder_mixed"})
      expect_same(load_as(flat, qwen_vl_names(open_weights(folder / other)), other), flat, 0, other);
  }
}

}  // namespace
}  // namespace orrery::weights
