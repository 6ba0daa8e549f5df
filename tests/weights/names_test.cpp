#include "orrery/weights/names.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "orrery/weights/name_rules.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TensorMap named(std::initializer_list<const char*> names) {
  TensorMap tensors;
  for (const char* name : names) tensors[name] = at::zeros({1});
  return tensors;
}

std::vector<std::string> names_of(const TensorMap& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(NameRules, MatchWholeSegmentsAndCarryTheIndex) {
  constexpr NameRule kRules[] = {{"blocks.#.a", "layers.#.b"}, {"head", "tail"}};
  EXPECT_EQ(renamed("blocks.12.a.weight", kRules), "layers.12.b.weight");
  EXPECT_EQ(renamed("head", kRules), "tail");
  EXPECT_EQ(renamed("header.weight", kRules), std::nullopt);
  EXPECT_EQ(renamed("blocks.x.a.weight", kRules), std::nullopt);
  EXPECT_EQ(renamed("blocks.12", kRules), std::nullopt);
  EXPECT_EQ(renamed("outer.blocks.1.a", kRules), std::nullopt);
}

TEST(CosmosNames, PrefersTheAverageAndDropsTheRest) {
  TensorMap tensors = named({"net.x_embedder.proj.1.weight", "optimizer.step"});
  tensors["net_ema.x_embedder.proj.1.weight"] = at::zeros({7});
  tensors = cosmos_names(std::move(tensors));
  EXPECT_THAT(names_of(tensors), ElementsAre("patch_embed.proj.weight"));
  EXPECT_EQ(tensors.begin()->second.numel(), 7);
}

TEST(CosmosNames, DropsWhatCarriesNoWeightAndKeepsTheUnknown) {
  const auto tensors =
      cosmos_names(named({"net.accum_iteration", "net.pos_embedder.seq", "net.blocks.3._extra_state",
                          "net.blocks.3.mlp.layer1.weight", "net.novelty.weight"}));
  EXPECT_THAT(names_of(tensors),
              ElementsAre("net.novelty.weight", "transformer_blocks.3.ff.net.0.proj.weight"));
}

TEST(CosmosNames, TellsWhoseNamesTheyAre) {
  EXPECT_EQ(cosmos_naming(named({"net.blocks.0.mlp.layer1.weight", "net.crossattn_proj.0.weight"})),
            Naming::kOfficial);
  EXPECT_EQ(cosmos_naming(named({"crossattn_proj.0.weight", "proj_out.weight"})), Naming::kDiffusers);
  const auto diffusers = named({"crossattn_proj.0.weight", "transformer_blocks.0.ff.net.2.weight"});
  EXPECT_EQ(names_of(cosmos_names(diffusers)), names_of(diffusers));
}

TEST(CosmosNames, KnowTheWayBack) {
  EXPECT_EQ(official_cosmos_name("transformer_blocks.1.ff.net.2.weight"), "net.blocks.1.mlp.layer2.weight");
  EXPECT_EQ(official_cosmos_name("proj_out.weight"), "net.final_layer.linear.weight");
  EXPECT_EQ(official_cosmos_name("crossattn_proj.0.bias"), "net.crossattn_proj.0.bias");
}

TEST(CosmosNames, RefuseTwoTensorsOfOneName) {
  EXPECT_EQ(code_of([] {
              cosmos_names(named({"net.final_layer.linear.weight", "final_layer.linear.weight"}));
            }),
            "duplicate_key");
}

TEST(CosmosNames, OfAControlBranchAreThoseOfTheBaseInAnotherList) {
  const auto official =
      named({"net.blocks.2.cross_attn.k_img_norm.weight", "net.img_context_proj.0.bias",
             "net.control_embedder.proj.1.weight", "net.control_blocks.0.before_proj.bias",
             "net.control_blocks.3.after_proj.weight", "net.control_blocks.1.cross_attn.v_img.weight",
             "net.control_blocks.1.self_attn.q_norm._extra_state", "net.control_blocks.1.mlp.layer2.weight"});
  EXPECT_THAT(names_of(cosmos_names(official)),
              ElementsAre("control_blocks.0.before_proj.bias", "control_blocks.1.attn2.v_img.weight",
                          "control_blocks.1.ff.net.2.weight", "control_blocks.3.after_proj.weight",
                          "control_embedder.proj.weight", "img_context_proj.0.bias",
                          "transformer_blocks.2.attn2.k_img_norm.weight"));
  for (const auto& [name, tensor] : cosmos_names(official))
    EXPECT_TRUE(official.contains(official_cosmos_name(name))) << name;
}

TEST(CosmosNames, OfAControlBranchAlone) {
  EXPECT_THAT(names_of(cosmos_control_names(
                  named({"net.blocks.0.mlp.layer1.weight", "net.control_embedder.proj.1.weight",
                         "net.control_blocks.1.mlp.layer2.weight", "net.final_layer.linear.weight"}))),
              ElementsAre("control_blocks.1.ff.net.2.weight", "control_embedder.proj.weight"));
  EXPECT_THAT(
      names_of(cosmos_control_names(
          named({"patch_embed.proj.weight", "patch_embed_base.proj.weight", "time_embed.norm.weight",
                 "crossattn_proj.0.bias", "img_context_proj.0.weight", "novelty.weight",
                 "control_blocks.1.ff.net.2.weight"}))),
      ElementsAre("control_blocks.1.ff.net.2.weight", "control_embedder.proj.weight", "novelty.weight"));
}

TEST(WanVaeNames, FollowTheListOfBlocks) {
  EXPECT_THAT(
      names_of(wan_vae_names(named({"conv1.weight", "decoder.upsamples.4.shortcut.bias",
                                    "decoder.upsamples.11.resample.1.weight",
                                    "encoder.downsamples.10.residual.6.weight", "decoder.head.0.gamma"}))),
      ElementsAre("decoder.norm_out.gamma", "decoder.up_blocks.1.resnets.0.conv_shortcut.bias",
                  "decoder.up_blocks.2.upsamplers.0.resample.1.weight", "encoder.down_blocks.10.conv2.weight",
                  "quant_conv.weight"));
  EXPECT_EQ(wan_vae_naming(named({"encoder.down_blocks.0.conv1.weight", "quant_conv.weight"})),
            Naming::kDiffusers);
}

TEST(QwenVlNames, MeetInOneSpelling) {
  for (const char* prefix :
       {"", "model.", "model.language_model.", "language_model.", "language_model.model."}) {
    const std::string key = std::string(prefix) + "layers.0.mlp.up_proj.weight";
    EXPECT_THAT(names_of(qwen_vl_names(named({key.c_str()}))), ElementsAre("layers.0.mlp.up_proj.weight"))
        << prefix;
  }
  EXPECT_THAT(names_of(qwen_vl_names(named({"model.visual.merger.ln_q.weight"}))),
              ElementsAre("visual.merger.ln_q.weight"));
  EXPECT_THAT(names_of(qwen_vl_names(named({"visual.merger.ln_q.weight"}))),
              ElementsAre("visual.merger.ln_q.weight"));
  EXPECT_THAT(names_of(qwen_vl_names(named({"lm_head.weight", "language_model.lm_head.weight",
                                            "model.layers.0.self_attn.rotary_emb.inv_freq"}))),
              IsEmpty());
  EXPECT_EQ(code_of([] {
              qwen_vl_names(named({"model.norm.weight", "language_model.norm.weight"}));
            }),
            "duplicate_key");
}

TEST(QwenImageNames, SingleFilesHaveAPrefix) {
  for (const char* key : {"model.diffusion_model.img_in.weight", "img_in.weight"})
    EXPECT_THAT(names_of(qwen_image_names(named({key}))), ElementsAre("img_in.weight"));
}

}  // namespace
}  // namespace orrery::weights
