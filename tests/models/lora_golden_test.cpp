// LoRA files in every key format change the Qwen-Image transformer as they change the reference's
// (tests/golden/lora).
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "orrery/models/load.h"
#include "orrery/models/qwen_image/model.h"
#include "orrery/parallel/team.h"
#include "orrery/weights/lora_merge.h"
#include "orrery/weights/source.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;
using weights::LoraChoice;
using weights::Storage;

/// The model and the one sample that all cases of a folder share.
class Sample {
 public:
  explicit Sample(const fs::path& folder)
      : folder_(folder),
        config_(qwen_image::read_transformer_config(folder / "transformer/config.json")),
        golden_(read_tensors(folder / "golden.safetensors")) {
    const Json description = read_json(folder / "case.json");
    for (const Json& shape : description["inputs"]["img_shapes"]) pictures_.push_back({shape[1], shape[2]});
  }

  Tensor velocity(const std::vector<LoraChoice>& loras, Storage storage) const {
    const c10::InferenceMode guard;
    auto tensors = weights::open_weights((folder_ / "transformer").string());
    weights::merge_loras(tensors, loras, at::kFloat);
    const qwen_image::Transformer model(
        config_, load<qwen_image::TransformerWeights>(std::move(tensors), config_, at::kFloat, storage,
                                                      folder_.string()));
    const auto grid = model.grid(pictures_);
    const auto prepared = model.prepare(grid, golden("inputs/encoder_hidden_states"));
    const auto step = model.steps({golden("inputs/timestep").item<float>()})[0];
    const auto tokens = model.tokens(grid, golden("inputs/hidden_states"));
    const parallel::Team team({}, {}, 2);
    return team.run([&](const parallel::Context& ctx) {
      parallel::BlockPolicy none;
      return parallel::run(ctx, model, prepared, step, tokens, none);
    });
  }

  /// The tensor, of a batch of one.
  Tensor golden(const std::string& name) const { return golden_.at(name)[0]; }

 private:
  fs::path folder_;
  qwen_image::TransformerConfig config_;
  std::map<std::string, Tensor> golden_;
  std::vector<qwen_image::PictureSize> pictures_;
};

TEST(LoraGolden, EveryFormatGivesTheReferencesVelocity) {
  const auto folders = golden_folders("lora");
  ASSERT_FALSE(folders.empty());
  double worst = 0;
  for (const auto& folder : folders) {
    const Sample sample(folder);
    const Json description = read_json(folder / "case.json");
    const double tolerance = description["tolerance"]["float32"]["max_abs_over_rms"];
    EXPECT_LE(max_abs_over_rms(sample.velocity({}, Storage::kWidened),
                               sample.golden("inputs/velocity_without_lora")),
              tolerance);
    ASSERT_FALSE(description["cases"].empty());
    for (const auto& entry : description["cases"]) {
      const std::string name = entry["name"], file = (folder / entry["file"].get<std::string>()).string();
      for (const auto& [strength, word] : {std::pair(1.0, "1.0"), std::pair(0.5, "0.5")}) {
        const Tensor got = sample.velocity({{file, strength}}, Storage::kWidened);
        const double off = max_abs_over_rms(got, sample.golden(concat(name, "/velocity_", word)));
        EXPECT_LE(off, tolerance) << name << " at " << word;
        worst = std::max(worst, off);
        EXPECT_TRUE(at::equal(sample.velocity({{file, strength}}, Storage::kMapped), got)) << name;
      }
    }
  }
  RecordProperty("worst_max_abs_over_rms", std::to_string(worst));
}

}  // namespace
}  // namespace orrery
