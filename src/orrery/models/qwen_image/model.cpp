// Spec qwen-image §2. Origin: huggingface/diffusers 58eb52c, models/transformers/transformer_qwenimage.py;
// the double-stream blocks are those of MM-DiT (Esser et al., arXiv 2403.03206).
#include "orrery/models/qwen_image/model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "orrery/base/error.h"
#include "orrery/nn/timestep.h"
#include "orrery/ops/modulate.h"
#include "orrery/ops/rms_norm.h"
#include "orrery/parallel/attention.h"

namespace orrery::qwen_image {
namespace {

using nn::linear;
using ops::Activation;

constexpr double kEps = 1e-6;        // of all norms (spec §2.2, §2.4, §2.5)
constexpr double kTimeScale = 1000;  // σ to the steps that the sinusoid was made for (spec §2.3)

/// The parts [E] of every row of a modulation, n to a row, as [n, T, E] in one piece of memory.
class Parts {
 public:
  Parts(const nn::Linear& modulation, const Tensor& conditioning, int64_t n)
      : parts_(linear(modulation, conditioning).unflatten(1, {n, -1}).permute({1, 0, 2}).contiguous()) {}

  /// Part i of row `row`, as one row.
  Tensor operator()(int64_t i, int64_t row) const { return parts_[i].narrow(0, row, 1); }

  /// … and, where given pictures have a row of their own, that one below it.
  Tensor operator()(int64_t i, int64_t row, std::optional<int64_t> given) const {
    const Tensor made = (*this)(i, row);
    return given ? at::cat(std::vector<Tensor>{made, (*this)(i, *given)}, 0) : made;
  }

 private:
  Tensor parts_;
};

/// Shift, scale, gate before attention, the same before the MLP.
Step::SideRows side_rows(const Parts& parts, int64_t row, std::optional<int64_t> given = {}) {
  const auto part = [&](int64_t i) { return parts(i, row, given); };
  return {{part(0), part(1), part(2)}, {part(3), part(4), part(5)}};
}

/// A stream's queries, keys and values for the joint attention.
parallel::Qkv qkv(const Side& w, const Step::Rows& m, const Stream::Side& s, int64_t head_dim, int64_t length,
                  bool replicated) {
  const auto h = ops::layer_norm_modulate(s.x, m.shift, m.scale, s.row, kEps);
  const auto heads = [&](const nn::Linear& l) { return linear(l, h).unflatten(-1, {-1, head_dim}); };
  const auto rotated = [&](const nn::Linear& l, const Tensor& norm) {
    return ops::rms_norm_rope(heads(l), norm, s.rope, kEps, ops::Pairs::kAdjacent);
  };
  return {rotated(w.q, w.norm_q), rotated(w.k, w.norm_k), heads(w.v), length, replicated};
}

/// What follows the attention, whose result for this stream is y.
void advance(const Side& w, const Step::SideRows& m, const Tensor& y, const Stream::Side& s) {
  ops::add_gated_(s.x, m.attention.gate, linear(w.out, y.flatten(1)), s.row);
  const auto h = ops::layer_norm_modulate(s.x, m.mlp.shift, m.mlp.scale, s.row, kEps);
  ops::add_gated_(s.x, m.mlp.gate, linear(w.down, linear(w.up, h, Activation::kGeluTanh)), s.row);
}

}  // namespace

Grid Transformer::grid(std::vector<PictureSize> pictures) const {
  ensure(!pictures.empty(), "expected at least one picture");
  std::vector<Tensor> given;
  for (const auto& picture : pictures) {
    ensure(picture.rows > 0 && picture.columns > 0, "expected pictures of at least one token, got ",
           picture.rows, "x", picture.columns);
    given.push_back(at::empty({picture.tokens()}, at::kInt).fill_(given.empty() ? 0 : 1));
  }
  const auto rope = nn::picture_rope(config_.rope_axes, pictures);
  return {std::move(pictures), rope, at::cat(given, 0)};
}

Prepared Transformer::prepare(const Grid& grid, const Tensor& embeds) const {
  require(embeds.dim() == 2 && embeds.size(0) > 0 && embeds.size(1) == config_.text_width,
          "text embeddings are ", embeds.sizes(), "; this model takes [tokens, ", config_.text_width, "]");
  const auto text = ops::rms_norm(embeds.to(dtype()), weights_.text_norm, kEps);
  return {linear(weights_.text_in, text), nn::text_rope(config_.rope_axes, grid.pictures, text.size(0)),
          grid.tokens()};
}

std::vector<Step> Transformer::steps(const std::vector<float>& times) const {
  auto all = times;
  if (config_.zero_cond_t) all.push_back(0);  // the given pictures' time: the last row, for every step
  const auto given = config_.zero_cond_t ? std::optional(std::ssize(times)) : std::nullopt;
  // Float32 from here, whatever the compute dtype: there are few rows.
  const auto rounded = at::tensor(all).to(dtype()).to(at::kFloat);
  const auto sinusoid = nn::timestep_embedding(rounded, kTimeChannels, kTimeScale);
  const auto& w = weights_.time_embed;
  const auto conditioning =
      linear(w.linear_2, linear(w.linear_1, sinusoid, Activation::kSilu), Activation::kSilu);
  std::vector<Step> steps(times.size());
  const auto each = [&](const auto& fn) {
    for (int64_t i = 0; i < std::ssize(times); ++i) fn(steps[static_cast<size_t>(i)], i);
  };
  for (const auto& block : weights_.blocks) {
    const Parts text(block.text.modulation, conditioning, 6), image(block.image.modulation, conditioning, 6);
    each([&](Step& step, int64_t i) {
      step.blocks.push_back({side_rows(text, i), side_rows(image, i, given)});
    });
  }
  // The output head has scale first, the blocks shift (spec §2.7).
  const Parts final(weights_.norm_out, conditioning, 2);
  each([&](Step& step, int64_t i) {
    step.final = {final(1, i), final(0, i), {}};
    step.row_of_given = at::tensor({0, given ? 1 : 0}, at::kInt);
  });
  return steps;
}

parallel::Tokens Transformer::tokens(const Grid& grid, const Tensor& packed) const {
  ensure(packed.dim() == 2 && packed.size(0) == grid.tokens() && packed.size(1) == config_.token_channels(),
         "expected packed latents [", grid.tokens(), ", ", config_.token_channels(), "], got ",
         packed.sizes());
  return {packed.to(dtype()), grid.rope, grid.given};
}

Stream Transformer::embed(const parallel::Context&, const Prepared& prepared, const Step& step,
                          const parallel::Tokens& tokens) const {
  const auto first_row = at::zeros({prepared.text.size(0)}, at::kInt);
  return {{prepared.text.clone(), prepared.text_rope, first_row},
          {linear(weights_.image_in, tokens.values), tokens.rope,
           step.row_of_given.index_select(0, tokens.frame)}};
}

void Transformer::block(const parallel::Context& ctx, const Prepared& prepared, const Step& step, int64_t i,
                        Stream& s) const {
  const auto& [text, image] = weights_.blocks[static_cast<size_t>(i)];
  const auto& m = step.blocks[static_cast<size_t>(i)];
  // Replicated, the text needs no exchange on the way to the heads, and its tokens count once.
  const auto y = parallel::attention(
      ctx, std::vector<parallel::Qkv>{
               qkv(text, m.text.attention, s.text, config_.head_dim, s.text.x.size(0), true),
               qkv(image, m.image.attention, s.image, config_.head_dim, prepared.sequence_length, false)});
  // Nothing looks at the text behind the last block.
  if (i + 1 < block_count()) advance(text, m.text, y[0], s.text);
  advance(image, m.image, y[1], s.image);
}

Tensor Transformer::unembed(const parallel::Context&, const Step& step, const Stream& s) const {
  const auto first_row = at::zeros({s.image.x.size(0)}, at::kInt);
  const auto h =
      ops::layer_norm_modulate(s.image.x.to(at::kFloat), step.final.shift, step.final.scale, first_row, kEps);
  return linear(weights_.proj_out, h);
}

}  // namespace orrery::qwen_image
