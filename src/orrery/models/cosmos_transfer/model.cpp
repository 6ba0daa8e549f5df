// Spec cosmos-transfer2.5 §2. Origin: nvidia-cosmos/cosmos-transfer2.5 2ff49d0,
// cosmos_transfer2/_src/transfer2/networks/minimal_v4_lvg_dit_control_vace.py; control branches beside a
// shared base: VACE, Jiang et al. 2025.
#include "orrery/models/cosmos_transfer/model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/nn/patchify.h"

namespace orrery::cosmos_transfer {
namespace {

using nn::linear;

bool acts(const Control& c) {
  const auto is_zero = [](double weight) { return weight == 0; };
  return !std::ranges::all_of(c.weights, is_zero) && c.hint.any().item<bool>() &&
         (!c.map.defined() || c.map.any().item<bool>());
}

/// The control embedding without the columns that only ever meet zeros: hint and masks are left, the masks as
/// in the base's embedding.
nn::Linear without_zeros(const nn::Linear& w, const TransformerConfig& c) {
  const int64_t hint = c.hint_inputs(), masks = c.base.patch_inputs() - hint;
  const auto last = w.weight.narrow(1, c.control_inputs() - masks, masks);
  return {at::cat(std::vector<Tensor>{w.weight.narrow(1, 0, hint), last}, 1), w.bias};
}

}  // namespace

std::vector<Control> active(std::vector<Control> controls) {
  std::erase_if(controls, [](const Control& c) { return !acts(c); });
  std::ranges::stable_sort(controls, {}, &Control::branch);
  return controls;
}

Transformer::Transformer(TransformerConfig config, TransformerWeights weights)
    : config_(std::move(config)),
      base_(config_.base, std::move(weights.base)),
      branches_(std::move(weights.branches)) {
  for (auto& branch : branches_) branch.patch_embed = without_zeros(branch.patch_embed, config_);
}

std::vector<Control> Transformer::checked(const Grid& grid, const std::vector<Control>& controls) const {
  const int64_t p = config_.base.patch;
  const Shape hint = {config_.base.latent_channels, grid.frames, grid.rows * p, grid.columns * p};
  const Shape map = {grid.frames, grid.rows, grid.columns};
  std::vector<bool> seen(branches_.size());
  for (const auto& c : controls) {
    require(c.branch < branches_.size(), "there is no control branch ", c.branch, "; this model has ",
            join(config_.branches));
    const auto& name = config_.branches[c.branch];
    require(!seen[c.branch], "the control ", name, " is given twice");
    seen[c.branch] = true;
    require(c.weights.size() == 1 || std::ssize(c.weights) == config_.control_blocks, "the control ", name,
            " has ", c.weights.size(), " weights; expected 1, or ", config_.control_blocks,
            " for its control blocks");
    require(std::ranges::all_of(c.weights, [](double weight) { return std::isfinite(weight); }),
            "a weight of the control ", name, " is not finite");
    require(c.hint.defined() && c.hint.sizes() == at::IntArrayRef(hint), "the control ", name,
            " has latents of ", c.hint.defined() ? c.hint.sizes() : at::IntArrayRef(), "; the clip's are ",
            at::IntArrayRef(hint));
    require(!c.map.defined() || c.map.sizes() == at::IntArrayRef(map), "the control ", name,
            " has a weight map of ", c.map.defined() ? c.map.sizes() : at::IntArrayRef(),
            "; the clip's tokens are ", at::IntArrayRef(map));
  }
  return active(controls);
}

Prepared Transformer::prepare(const Grid& grid, const Tensor& embeds, const Tensor& image_features,
                              const std::vector<Control>& controls) const {
  const auto acting = checked(grid, controls);
  const auto prompt = base_.prompt(embeds, image_features);
  Prepared p{base_.prepare(grid, prompt), {}};
  for (const auto& control : acting) {
    auto& branch = p.branches.emplace_back(Prepared::Branch{control.branch, control.weights, {}});
    branch.weights.resize(static_cast<size_t>(config_.control_blocks), control.weights.front());
    for (const auto& w : branches_[control.branch].blocks)
      branch.cross.push_back(cosmos::cross_attention(w.block, config_.base, prompt));
  }
  return p;
}

Step Transformer::step(const Prepared& prepared, const std::vector<float>& times) const {
  const auto time = base_.time(times);
  Step step{base_.step(time), {}};
  for (const auto& branch : prepared.branches) {
    auto& rows = step.branches.emplace_back();
    for (const auto& w : branches_[branch.index].blocks) rows.push_back(cosmos::block_rows(w.block, time));
  }
  return step;
}

parallel::Tokens Transformer::tokens(const Grid& grid, const Tensor& latents, int64_t given,
                                     const std::vector<Control>& controls) const {
  auto tokens = base_.tokens(grid, latents, given);
  std::vector<Tensor> columns = {tokens.values};
  for (const auto& control : checked(grid, controls)) {
    columns.push_back(nn::patchify(control.hint, config_.base.patch).to(dtype()));
    columns.push_back(control.map.defined() ? control.map.flatten().unsqueeze(1).to(dtype())
                                            : at::ones({grid.tokens(), 1}, dtype()));
  }
  if (columns.size() > 1) tokens.values = at::cat(columns, 1);
  return tokens;
}

Stream Transformer::embed(const parallel::Context& ctx, const Prepared& prepared, const Step& step,
                          const parallel::Tokens& tokens) const {
  const auto& values = tokens.values;
  const int64_t hint = config_.hint_inputs(), own = config_.base.patch_inputs();
  Stream s{base_.embed(ctx, prepared.base, step.base,
                       {values.narrow(1, 0, own).contiguous(), tokens.rope, tokens.frame}),
           {}};
  const auto masks = values.narrow(1, hint, own - hint);
  int64_t at = own;
  for (const auto& branch : prepared.branches) {
    const auto& w = branches_[branch.index];
    const auto seen = at::cat(std::vector<Tensor>{values.narrow(1, at, hint), masks}, 1);
    const auto c = linear(w.before_proj, linear(w.patch_embed, seen)) + s.base.x;
    s.branches.push_back({{c, s.base.rope, s.base.row}, values.narrow(1, at + hint, 1)});
    at += hint + 1;
  }
  return s;
}

void Transformer::block(const parallel::Context& ctx, const Prepared& prepared, const Step& step, int64_t i,
                        Stream& s) const {
  base_.block(ctx, prepared.base, step.base, i, s.base);
  if (i % config_.every != 0 || i / config_.every >= config_.control_blocks) return;
  const auto k = static_cast<size_t>(i / config_.every);
  Tensor hints;
  for (size_t n = 0; n < s.branches.size(); ++n) {
    const auto& branch = prepared.branches[n];
    const auto& w = branches_[branch.index].blocks[k];
    auto& [c, map] = s.branches[n];
    cosmos::block(ctx, config_.base, w.block, branch.cross[k], step.branches[n][k],
                  prepared.base.sequence_length, c);
    const auto hint = linear(w.after_proj, c.x) * (map * branch.weights[k]);
    hints = hints.defined() ? hints + hint : hint;
  }
  if (hints.defined()) s.base.x.add_(hints);
}

}  // namespace orrery::cosmos_transfer
