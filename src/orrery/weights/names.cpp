#include "orrery/weights/names.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "orrery/base/log.h"
#include "orrery/weights/name_rules.h"
#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

// Spec cosmos-predict2.5 §3.2, cosmos-transfer2.5 §2.9. Index 0 of the official Sequentials has no
// parameters, hence the .1 and .2.
constexpr NameRule kCosmos[] = {
    {"x_embedder.proj.1", "patch_embed.proj"},
    {"t_embedder.1", "time_embed.t_embedder"},
    {"t_embedding_norm", "time_embed.norm"},
    {"crossattn_proj.0", "crossattn_proj.0"},
    {"img_context_proj.0", "img_context_proj.0"},
    {"blocks.#.adaln_modulation_self_attn.1", "transformer_blocks.#.norm1.linear_1"},
    {"blocks.#.adaln_modulation_self_attn.2", "transformer_blocks.#.norm1.linear_2"},
    {"blocks.#.adaln_modulation_cross_attn.1", "transformer_blocks.#.norm2.linear_1"},
    {"blocks.#.adaln_modulation_cross_attn.2", "transformer_blocks.#.norm2.linear_2"},
    {"blocks.#.adaln_modulation_mlp.1", "transformer_blocks.#.norm3.linear_1"},
    {"blocks.#.adaln_modulation_mlp.2", "transformer_blocks.#.norm3.linear_2"},
    {"blocks.#.self_attn.q_proj", "transformer_blocks.#.attn1.to_q"},
    {"blocks.#.self_attn.k_proj", "transformer_blocks.#.attn1.to_k"},
    {"blocks.#.self_attn.v_proj", "transformer_blocks.#.attn1.to_v"},
    {"blocks.#.self_attn.output_proj", "transformer_blocks.#.attn1.to_out.0"},
    {"blocks.#.self_attn.q_norm", "transformer_blocks.#.attn1.norm_q"},
    {"blocks.#.self_attn.k_norm", "transformer_blocks.#.attn1.norm_k"},
    {"blocks.#.cross_attn.q_proj", "transformer_blocks.#.attn2.to_q"},
    {"blocks.#.cross_attn.k_proj", "transformer_blocks.#.attn2.to_k"},
    {"blocks.#.cross_attn.v_proj", "transformer_blocks.#.attn2.to_v"},
    {"blocks.#.cross_attn.output_proj", "transformer_blocks.#.attn2.to_out.0"},
    {"blocks.#.cross_attn.q_norm", "transformer_blocks.#.attn2.norm_q"},
    {"blocks.#.cross_attn.k_norm", "transformer_blocks.#.attn2.norm_k"},
    {"blocks.#.cross_attn.q_img", "transformer_blocks.#.attn2.q_img"},
    {"blocks.#.cross_attn.k_img", "transformer_blocks.#.attn2.k_img"},
    {"blocks.#.cross_attn.v_img", "transformer_blocks.#.attn2.v_img"},
    {"blocks.#.cross_attn.q_img_norm", "transformer_blocks.#.attn2.q_img_norm"},
    {"blocks.#.cross_attn.k_img_norm", "transformer_blocks.#.attn2.k_img_norm"},
    {"blocks.#.mlp.layer1", "transformer_blocks.#.ff.net.0.proj"},
    {"blocks.#.mlp.layer2", "transformer_blocks.#.ff.net.2"},
    {"final_layer.adaln_modulation.1", "norm_out.linear_1"},
    {"final_layer.adaln_modulation.2", "norm_out.linear_2"},
    {"final_layer.linear", "proj_out"},
    {"control_embedder.proj.1", "control_embedder.proj"},
    {"control_blocks.#.before_proj", "control_blocks.#.before_proj"},
    {"control_blocks.#.after_proj", "control_blocks.#.after_proj"},
};

// A block of a control branch is a block of the base in a list of another name.
constexpr std::string_view kControlBlocks = "control_blocks.", kOfficialBlocks = "blocks.",
                           kDiffusersBlocks = "transformer_blocks.";

// Spec cosmos-transfer2.5 §2.9: what diffusers' CosmosControlNetModel repeats of the base.
constexpr std::string_view kCopiesOfTheBase[] = {"patch_embed_base.", "time_embed.", "crossattn_proj.",
                                                 "img_context_proj."};

// Spec cosmos-predict2.5 §3.1.
constexpr std::string_view kTrained = "net.", kAveraged = "net_ema.";

// The same: entries of official files that carry no weight.
constexpr std::string_view kCosmosIgnored[] = {
    "accum_video_sample_counter",
    "accum_image_sample_counter",
    "accum_iteration",
    "accum_train_in_hours",
    "pos_embedder.seq",
    "pos_embedder.dim_spatial_range",
    "pos_embedder.dim_temporal_range",
};

// Spec cosmos-predict2.5 §8.5. The official decoder is one list: three residual blocks, then an upsampler,
// four times.
constexpr NameRule kWan[] = {
    {"conv1", "quant_conv"},
    {"conv2", "post_quant_conv"},
    {"encoder.conv1", "encoder.conv_in"},
    {"decoder.conv1", "decoder.conv_in"},
    {"encoder.downsamples", "encoder.down_blocks"},
    {"decoder.upsamples.0", "decoder.up_blocks.0.resnets.0"},
    {"decoder.upsamples.1", "decoder.up_blocks.0.resnets.1"},
    {"decoder.upsamples.2", "decoder.up_blocks.0.resnets.2"},
    {"decoder.upsamples.3", "decoder.up_blocks.0.upsamplers.0"},
    {"decoder.upsamples.4", "decoder.up_blocks.1.resnets.0"},
    {"decoder.upsamples.5", "decoder.up_blocks.1.resnets.1"},
    {"decoder.upsamples.6", "decoder.up_blocks.1.resnets.2"},
    {"decoder.upsamples.7", "decoder.up_blocks.1.upsamplers.0"},
    {"decoder.upsamples.8", "decoder.up_blocks.2.resnets.0"},
    {"decoder.upsamples.9", "decoder.up_blocks.2.resnets.1"},
    {"decoder.upsamples.10", "decoder.up_blocks.2.resnets.2"},
    {"decoder.upsamples.11", "decoder.up_blocks.2.upsamplers.0"},
    {"decoder.upsamples.12", "decoder.up_blocks.3.resnets.0"},
    {"decoder.upsamples.13", "decoder.up_blocks.3.resnets.1"},
    {"decoder.upsamples.14", "decoder.up_blocks.3.resnets.2"},
    {"encoder.middle.0", "encoder.mid_block.resnets.0"},
    {"encoder.middle.1", "encoder.mid_block.attentions.0"},
    {"encoder.middle.2", "encoder.mid_block.resnets.1"},
    {"decoder.middle.0", "decoder.mid_block.resnets.0"},
    {"decoder.middle.1", "decoder.mid_block.attentions.0"},
    {"decoder.middle.2", "decoder.mid_block.resnets.1"},
    {"encoder.head.0", "encoder.norm_out"},
    {"encoder.head.2", "encoder.conv_out"},
    {"decoder.head.0", "decoder.norm_out"},
    {"decoder.head.2", "decoder.conv_out"},
};

// The parts of a residual block.
struct Part {
  std::string_view official, diffusers;
};
constexpr Part kWanParts[] = {
    {".residual.0.", ".norm1."}, {".residual.2.", ".conv1."},       {".residual.3.", ".norm2."},
    {".residual.6.", ".conv2."}, {".shortcut.", ".conv_shortcut."},
};

// Spec qwen2.5-vl-text §6: the longest prefix first.
constexpr NameRule kQwenPrefixes[] = {
    {"model.visual.", "visual."},
    {"model.language_model.", ""},
    {"language_model.model.", ""},
    {"language_model.", ""},
    {"model.", ""},
};

using Rename = std::function<std::optional<std::string>(const std::string&)>;  // nothing: drop the tensor

TensorMap rename(TensorMap tensors, const Rename& new_name) {
  TensorMap out;
  for (auto& [name, tensor] : tensors)
    if (auto chosen = new_name(name))
      if (!out.emplace(*chosen, std::move(tensor)).second)
        refuse(Fault::kDuplicateKey, "two tensors are ", shown(*chosen), ", one of them under the name ",
               shown(name));
  return out;
}

bool any_starts_with(const TensorMap& tensors, std::string_view prefix) {
  const auto found = tensors.lower_bound(std::string(prefix));
  return found != tensors.end() && found->first.starts_with(prefix);
}

bool carries_no_cosmos_weight(std::string_view name) {
  return name.find("_extra_state") != name.npos ||
         std::ranges::find(kCosmosIgnored, name) != std::end(kCosmosIgnored);
}

/// A Cosmos name by `rules`, which spell a base block's list `from` and `to`.
std::optional<std::string> renamed_cosmos(std::string_view name, std::span<const NameRule> rules,
                                          std::string_view from, std::string_view to) {
  if (auto out = renamed(name, rules)) return out;
  if (!name.starts_with(kControlBlocks)) return {};
  const auto out = renamed(concat(from, name.substr(kControlBlocks.size())), rules);
  if (!out) return {};
  return concat(kControlBlocks, std::string_view(*out).substr(to.size()));
}

}  // namespace

Naming cosmos_naming(const TensorMap& tensors) {
  for (std::string_view own :
       {"transformer_blocks.", "patch_embed.", "time_embed.", "norm_out.", "proj_out."})
    if (any_starts_with(tensors, own)) return Naming::kDiffusers;
  return Naming::kOfficial;
}

TensorMap cosmos_names(TensorMap tensors) {
  if (cosmos_naming(tensors) == Naming::kDiffusers) return tensors;
  const bool averaged = any_starts_with(tensors, kAveraged);
  if (averaged && any_starts_with(tensors, kTrained))
    log::warn(
        "the checkpoint holds trained (net.) and averaged (net_ema.) weights: the averaged ones are used");
  return rename(std::move(tensors), [&](const std::string& name) -> std::optional<std::string> {
    std::string_view bare = name;
    if (averaged && !bare.starts_with(kAveraged)) return {};
    for (std::string_view prefix : {kAveraged, kTrained})
      if (bare.starts_with(prefix)) bare.remove_prefix(prefix.size());
    if (carries_no_cosmos_weight(bare)) return {};
    return renamed_cosmos(bare, kCosmos, kOfficialBlocks, kDiffusersBlocks).value_or(name);
  });
}

TensorMap cosmos_control_names(TensorMap tensors) {
  if (cosmos_naming(tensors) == Naming::kOfficial) {
    tensors = cosmos_names(std::move(tensors));
    std::erase_if(tensors, [](const auto& entry) { return !entry.first.starts_with("control_"); });
    return tensors;
  }
  constexpr NameRule kEmbedder[] = {{"patch_embed", "control_embedder"}};
  return rename(std::move(tensors), [&](const std::string& name) -> std::optional<std::string> {
    for (std::string_view copied : kCopiesOfTheBase)
      if (name.starts_with(copied)) return {};
    return renamed(name, kEmbedder).value_or(name);
  });
}

std::string official_cosmos_name(std::string_view name) {
  std::vector<NameRule> back;
  for (const auto& rule : kCosmos) back.push_back({rule.to, rule.from});
  return concat(kTrained,
                renamed_cosmos(name, back, kDiffusersBlocks, kOfficialBlocks).value_or(std::string(name)));
}

Naming wan_vae_naming(const TensorMap& tensors) {
  const bool official =
      any_starts_with(tensors, "encoder.downsamples.") || any_starts_with(tensors, "decoder.upsamples.");
  return official ? Naming::kOfficial : Naming::kDiffusers;
}

TensorMap wan_vae_names(TensorMap tensors) {
  if (wan_vae_naming(tensors) == Naming::kDiffusers) return tensors;
  return rename(std::move(tensors), [](const std::string& name) {
    std::string out = renamed(name, kWan).value_or(name);
    for (const auto& part : kWanParts)
      if (const size_t at = out.find(part.official); at != out.npos)
        out.replace(at, part.official.size(), part.diffusers);
    return std::optional(out);
  });
}

TensorMap qwen_vl_names(TensorMap tensors) {
  return rename(std::move(tensors), [](const std::string& name) -> std::optional<std::string> {
    std::string out = name;
    for (const auto& prefix : kQwenPrefixes)
      if (name.starts_with(prefix.from)) {
        out = std::string(prefix.to) + name.substr(prefix.from.size());
        break;
      }
    if (out.starts_with("lm_head.") || out.ends_with("rotary_emb.inv_freq")) return {};
    return out;
  });
}

TensorMap qwen_image_names(TensorMap tensors) {
  constexpr std::string_view kPrefix = "model.diffusion_model.";
  if (!any_starts_with(tensors, kPrefix)) return tensors;
  return rename(std::move(tensors), [&](const std::string& name) {
    return std::optional(name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name);
  });
}

}  // namespace orrery::weights
