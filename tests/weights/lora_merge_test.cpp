#include "orrery/weights/lora_merge.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>

#include "orrery/platform/thread.h"
#include "orrery/weights/lora_family.h"
#include "orrery/weights/names.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/golden.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;

const std::string kQ = "transformer_blocks.0.attn.to_q", kOut = "transformer_blocks.0.attn.to_out.0";

/// Sizes that are no multiples of anything, more rows than are merged at a time.
TensorMap small_base(at::ScalarType dtype = at::kFloat) {
  return {{kQ + ".weight", at::randn({1031, 37}).to(dtype)},
          {kQ + ".bias", at::randn({1031}).to(dtype)},
          {kOut + ".weight", at::randn({5, 1031}).to(dtype)},
          {"img_in.weight", at::randn({7, 3}).to(dtype)}};
}

std::string save(const TempDir& folder, const std::string& name, const TensorMap& tensors) {
  write_safetensors(folder / name, tensors);
  return folder / name;
}

TensorMap pair(const std::string& module, int64_t out, int64_t in, int64_t rank) {
  return {{module + ".lora_A.weight", at::randn({rank, in})},
          {module + ".lora_B.weight", at::randn({out, rank})}};
}

/// up · down in float64
Tensor product(const TensorMap& tensors, const std::string& module) {
  return tensors.at(module + ".lora_B.weight")
      .to(at::kDouble)
      .matmul(tensors.at(module + ".lora_A.weight").to(at::kDouble));
}

// The largest of 38,000 float32 sums of 20 products is some tens of rounding steps of 6e-8 from its value.
constexpr double kRounding = 3e-6;

TEST(MergeLoras, AddsSeveralFilesWithTheirStrengths) {
  const TempDir folder;
  const auto before = small_base();
  auto first = pair("transformer." + kQ, 1031, 37, 3), second = pair("diffusion_model." + kQ, 1031, 37, 16);
  second["diffusion_model." + kQ + ".alpha"] = at::scalar_tensor(4.0);
  second.merge(pair("diffusion_model." + kOut, 5, 1031, 1));
  const std::vector<LoraChoice> choices{{save(folder, "a.safetensors", first), 0.5},
                                        {save(folder, "b.safetensors", second), -2}};
  auto after = before;
  EXPECT_EQ(merge_loras(after, choices, at::kFloat), 4 * (1031 * 37 + 5 * 1031));
  const Tensor expected = before.at(kQ + ".weight").to(at::kDouble) +
                          0.5 * product(first, "transformer." + kQ) -
                          2 * 0.25 * product(second, "diffusion_model." + kQ);
  EXPECT_LE(max_abs_over_rms(after.at(kQ + ".weight"), expected), kRounding);
  EXPECT_LE(max_abs_over_rms(after.at(kOut + ".weight"), before.at(kOut + ".weight").to(at::kDouble) -
                                                             2 * product(second, "diffusion_model." + kOut)),
            kRounding);
  for (const auto& name : {kQ + ".bias", std::string("img_in.weight")})
    EXPECT_TRUE(after.at(name).is_same(before.at(name))) << name;
}

TEST(MergeLoras, RoundsOnceToTheTypeAskedFor) {
  const TempDir folder;
  const auto before = small_base(at::kBFloat16);
  const auto lora = pair(kQ, 1031, 37, 4);
  const std::vector<LoraChoice> choices{{save(folder, "a.safetensors", lora)}};
  auto wide = before, narrow = before;
  merge_loras(wide, choices, at::kFloat);
  EXPECT_EQ(merge_loras(narrow, choices, at::kBFloat16), 2 * 1031 * 37);
  EXPECT_EQ(narrow.at(kQ + ".weight").scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(narrow.at(kQ + ".weight"), wide.at(kQ + ".weight").to(at::kBFloat16)));
}

TEST(MergeLoras, LeavesTheBasesFileAsItIs) {
  const TempDir folder;
  const auto base = small_base();
  auto mapped = open_safetensors(save(folder, "base.safetensors", base));
  merge_loras(mapped, std::vector<LoraChoice>{{save(folder, "a.safetensors", pair(kQ, 1031, 37, 4))}},
              at::kFloat);
  EXPECT_FALSE(at::equal(mapped.at(kQ + ".weight"), base.at(kQ + ".weight")));
  for (const auto& [name, t] : open_safetensors(folder / "base.safetensors"))
    EXPECT_TRUE(at::equal(t, base.at(name))) << name;
}

TEST(MergeLoras, ChecksAStrengthOfZeroAndChangesNothing) {
  const TempDir folder;
  const auto before = small_base();
  auto after = before;
  const auto good = save(folder, "a.safetensors", pair(kQ, 1031, 37, 4));
  EXPECT_EQ(merge_loras(after, std::vector<LoraChoice>{{good, 0}}, at::kFloat), 0);
  for (const auto& [name, t] : after) EXPECT_TRUE(t.is_same(before.at(name))) << name;
  const auto bad = save(folder, "b.safetensors", pair("other", 1031, 37, 4));
  EXPECT_EQ(code_of([&] {
              merge_loras(after, std::vector<LoraChoice>{{bad, 0}}, at::kFloat);
            }),
            "unknown_key");
}

TEST(MergeLoras, GivesTheSameBitsOnAnyNumberOfThreads) {
  const TempDir folder;
  const TensorMap base{{kQ + ".weight", at::randn({1031, 1537})}};
  const std::vector<LoraChoice> choices{{save(folder, "a.safetensors", pair(kQ, 1031, 1537, 67))}};
  const auto on_threads = [&](int threads) {
    auto merged = base;
    const platform::ThreadsGuard guard(threads);
    merge_loras(merged, choices, at::kFloat);
    return merged.at(kQ + ".weight");
  };
  const Tensor one = on_threads(1);
  for (int threads : {2, 3, 5}) EXPECT_TRUE(at::equal(on_threads(threads), one)) << threads;
}

TEST(MergeLoras, FindsFlattenedAndOfficialNames) {
  const TempDir folder;
  auto base = small_base();
  const auto kohya =
      save(folder, "k.safetensors",
           {{"lora_unet_transformer_blocks_0_attn_to_out_0.lora_down.weight", at::ones({1, 1031})},
            {"lora_unet_transformer_blocks_0_attn_to_out_0.lora_up.weight", at::ones({5, 1})}});
  EXPECT_EQ(merge_loras(base, std::vector<LoraChoice>{{kohya}}, at::kFloat), 4 * 5 * 1031);

  TensorMap cosmos{{"transformer_blocks.3.attn1.to_q.weight", at::ones({4, 4})}};
  for (const char* module :
       {"net.blocks.3.self_attn.q_proj", "diffusion_model.blocks.3.self_attn.q_proj",
        "lora_unet_blocks_3_self_attn_q_proj", "transformer.transformer_blocks.3.attn1.to_q"}) {
    const auto path = save(folder, "c.safetensors", pair(module, 4, 4, 1));
    EXPECT_EQ(merge_loras(cosmos, std::vector<LoraChoice>{{path}}, at::kFloat, official_cosmos_name), 64)
        << module;
  }
}

TEST(MergeLoras, TellsNoModulesApartThatFlattenAlike) {
  const TempDir folder;
  TensorMap base{{"a.b_c.weight", at::ones({4, 4})}, {"a_b.c.weight", at::ones({4, 4})}};
  const auto flat = save(folder, "f.safetensors", pair("lora_unet_a_b_c", 4, 4, 1));
  EXPECT_EQ(code_of([&] { merge_loras(base, std::vector<LoraChoice>{{flat}}, at::kFloat); }), "unknown_key");
  const auto dotted = save(folder, "d.safetensors", pair("a_b.c", 4, 4, 1));
  EXPECT_EQ(merge_loras(base, std::vector<LoraChoice>{{dotted}}, at::kFloat), 64);
}

TEST(MergeLoras, SaysWhichFamilyAFileLooksLike) {
  const TempDir folder;
  auto base = small_base();
  base["transformer_blocks.0.img_mlp.net.2.weight"] = at::ones({3, 3});
  const auto message = [&](const std::string& module) {
    const auto path = save(folder, "x.safetensors", pair(module, 1031, 37, 2));
    const auto error = error_of([&] { merge_loras(base, std::vector<LoraChoice>{{path}}, at::kFloat); });
    EXPECT_EQ(error.code(), "unknown_key") << module;
    return error.message();
  };
  const std::pair<const char*, const char*> cases[] = {
      {"transformer.single_transformer_blocks.0.attn.to_q", "FLUX or HunyuanVideo"},
      {"lora_unet_double_blocks_0_img_mod_lin", "FLUX or HunyuanVideo"},
      {"unet.down_blocks.1.attentions.0.transformer_blocks.0.attn1.to_q", "Stable Diffusion or SDXL"},
      {"lora_unet_input_blocks_4_1_proj_in", "Stable Diffusion or SDXL"},
      {"net.blocks.0.self_attn.q_proj", "Cosmos-Predict2.5"},
      {"diffusion_model.blocks.0.cross_attn.k", "Wan"},
      {"transformer.transformer_blocks.0.attn1.to_q",
       "Cosmos-Predict2.5, Wan or LTX-Video in diffusers names"},
      {"lora_te_text_model_encoder_layers_0_mlp_fc1", "a text encoder"},
      {"diffusion_model.noise_refiner.0.attention.to_q", "Z-Image"},
  };
  for (const auto& [module, family] : cases)
    EXPECT_THAT(message(module),
                HasSubstr(concat("1 of 1 modules are not in the model, they look like ", family)));
  EXPECT_THAT(message("transformer_blocks.0.img_mlp.net.3"),
              HasSubstr("not in the model: transformer_blocks.0.img_mlp.net.3 (did you mean "
                        "transformer_blocks.0.img_mlp.net.2?)"))
      << "of its own family";
  EXPECT_THAT(message("lora_unet_transformer_blocks_0_attn_to_r"), HasSubstr("did you mean " + kQ));
  EXPECT_EQ(family_of(std::vector<std::string>{"a", "b"}), "");
}

TEST(MergeLoras, RefusesWhatDoesNotFitTheModel) {
  const TempDir folder;
  const auto before = small_base();
  const auto code = [&](const TensorMap& tensors) {
    auto after = before;
    const std::vector<LoraChoice> choices{{save(folder, "good.safetensors", pair(kOut, 5, 1031, 1))},
                                          {save(folder, "bad.safetensors", tensors)}};
    const auto error = error_of([&] { merge_loras(after, choices, at::kFloat); });
    for (const auto& [name, t] : after) EXPECT_TRUE(t.is_same(before.at(name))) << name;
    return error.code();
  };
  EXPECT_EQ(code(pair(kQ, 1031, 36, 2)), "invalid_shape");
  EXPECT_EQ(code(pair(kQ, 37, 1031, 2)), "invalid_shape");
  EXPECT_EQ(code(pair(kQ, 1031, 0, 0)), "invalid_shape");
  auto twice = pair("transformer." + kQ, 1031, 37, 2);
  twice.merge(pair("diffusion_model." + kQ, 1031, 37, 2));
  EXPECT_EQ(code(twice), "duplicate_key");
  for (double bad : {std::nan(""), HUGE_VAL}) {
    auto poisoned = pair(kQ, 1031, 37, 2);
    poisoned[kQ + ".lora_A.weight"][1][36] = bad;
    EXPECT_EQ(code(poisoned), "invalid_tensor");
  }
}

}  // namespace
}  // namespace orrery::weights
