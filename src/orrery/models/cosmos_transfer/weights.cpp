#include "orrery/models/cosmos_transfer/weights.h"

#include <algorithm>

#include "orrery/base/text.h"
#include "orrery/weights/names.h"

namespace orrery::cosmos_transfer {
namespace {

constexpr std::string_view kControl = "control_";

constexpr std::string_view kImageContext[] = {".attn2.q_img.", ".attn2.k_img.", ".attn2.v_img.",
                                              ".attn2.q_img_norm.", ".attn2.k_img_norm."};

bool is_image_context(std::string_view name) {
  return name.starts_with("img_context_proj.") ||
         std::ranges::any_of(kImageContext,
                             [&](std::string_view part) { return name.find(part) != name.npos; });
}

}  // namespace

weights::TensorMap assemble(const weights::TensorMap& base, const std::vector<BranchTensors>& branches) {
  const auto used = [&](std::string_view name) { return branches.size() == 1 || !is_image_context(name); };
  weights::TensorMap all;
  for (const auto& [name, tensor] : base)
    if (!name.starts_with(kControl) && used(name)) all.emplace(name, tensor);
  for (const auto& branch : branches)
    for (const auto& [name, tensor] : branch.tensors)
      if (used(name)) all.emplace(concat(branch.name, ".", name), tensor);
  return all;
}

std::string official_name(std::string_view name) {
  if (const size_t dot = name.find('.'); dot != name.npos && name.substr(dot + 1).starts_with(kControl))
    name.remove_prefix(dot + 1);
  return weights::official_cosmos_name(name);
}

}  // namespace orrery::cosmos_transfer
