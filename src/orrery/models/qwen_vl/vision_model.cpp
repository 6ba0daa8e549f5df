// huggingface/transformers, models/qwen2_5_vl/modeling_qwen2_5_vl.py
// (Qwen2_5_VisionTransformerPretrainedModel). Spec qwen2.5-vl-text §7.2.
#include "orrery/models/qwen_vl/vision_model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/nn/rope.h"
#include "orrery/ops/attention.h"
#include "orrery/ops/rms_norm.h"

namespace orrery::qwen_vl {
namespace {

constexpr double kNormEps = 1e-6;  // fixed in the reference

/// [S, D]: cosines, then sines; half of the D/2 angles turn with the row and half with the column.
Tensor rope_table(const VisionConfig& c, const Tensor& positions) {
  const int64_t head_dim = c.hidden_size / c.heads;
  const auto frequencies = nn::rope_frequencies(head_dim / 2, /*ratio=*/1, /*bf16_exponents=*/false);
  const auto angles = (positions.to(at::kFloat).unsqueeze(2) * frequencies).flatten(1);
  return at::cat({angles.cos(), angles.sin()}, 1);
}

/// `lengths`: the runs of tokens within which attention stays.
Tensor attention(const VisionAttention& w, const VisionConfig& c, const Tensor& x, const Tensor& rope,
                 const std::vector<int64_t>& lengths) {
  const auto heads = nn::linear(w.qkv, x).unflatten(-1, {3, c.heads, -1});
  const auto q = ops::rms_norm_rope(heads.select(1, 0), {}, rope, 0);
  const auto k = ops::rms_norm_rope(heads.select(1, 1), {}, rope, 0);
  const auto v = heads.select(1, 2);
  std::vector<Tensor> runs;
  int64_t start = 0;
  for (const int64_t n : lengths) {
    runs.push_back(ops::attention(q.narrow(0, start, n), k.narrow(0, start, n), v.narrow(0, start, n)));
    start += n;
  }
  return nn::linear(w.proj, at::cat(runs).flatten(1));
}

/// The merge × merge patches of a group side by side, through two layers.
Tensor merge(const Merger& w, const VisionConfig& c, const Tensor& x) {
  const auto groups =
      ops::rms_norm(x, w.norm, kNormEps).view({-1, c.merge_size * c.merge_size * c.hidden_size});
  return nn::linear(w.out, nn::linear(w.hidden, groups, ops::Activation::kGelu));
}

/// Rows [S, …] in groups of `size`, the groups in another order.
Tensor reorder(const Tensor& rows, int64_t size, const Tensor& order) {
  return rows.unflatten(0, {-1, size}).index_select(0, order.to(rows.device())).flatten(0, 1);
}

Tensor inverse(const Tensor& order) {
  auto out = at::empty_like(order);
  const auto* from = order.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < order.size(0); ++i) out.data_ptr<int64_t>()[from[i]] = i;
  return out;
}

}  // namespace

Tensor patch_positions(const VisionConfig& c, Grid patches) {
  auto out = at::empty({patches.count(), 2}, at::kLong);
  auto* to = out.data_ptr<int64_t>();
  for_each_patch(patches, c.merge_size, [&](int64_t row, int64_t column) { *to++ = row, *to++ = column; });
  return out;
}

Windows windows_of(const VisionConfig& c, Grid merged) {
  Windows out{at::empty({merged.count()}, at::kLong), {}};
  auto* to = out.order.data_ptr<int64_t>();
  const int64_t side = c.window_groups();
  for (int64_t top = 0; top < merged.rows; top += side)
    for (int64_t left = 0; left < merged.columns; left += side) {
      const int64_t bottom = std::min(top + side, merged.rows), right = std::min(left + side, merged.columns);
      for (int64_t row = top; row < bottom; ++row)
        for (int64_t column = left; column < right; ++column) *to++ = row * merged.columns + column;
      out.lengths.push_back((bottom - top) * (right - left) * c.merge_size * c.merge_size);
    }
  return out;
}

EncodedImage run_vision(const VisionWeights& weights, const VisionConfig& c, const ImagePatches& patches,
                        at::ScalarType dtype) {
  const Grid grid = patches.grid, merged = {grid.rows / c.merge_size, grid.columns / c.merge_size};
  const int64_t group = c.merge_size * c.merge_size;
  ensure(merged.count() > 0 && merged.count() * group == grid.count() &&
             patches.values.sizes() == at::IntArrayRef({grid.count(), c.patch_features()}),
         "vision tower: expected [", grid.count(), ", ", c.patch_features(), "] for ", grid.rows, " × ",
         grid.columns, " patches in groups of ", group, ", got ", patches.values.sizes());
  const Windows windows = windows_of(c, merged);
  const auto device = weights.patch_embedding.device();
  const auto x = reorder(patches.values, group, windows.order).to(device, dtype);
  const auto rope = rope_table(c, reorder(patch_positions(c, grid), group, windows.order)).to(device);
  // Kernel and stride of the convolution are one patch: it is a matrix.
  auto h = ops::linear(x, weights.patch_embedding.flatten(1));
  for (int64_t i = 0; i < c.depth; ++i) {
    const VisionBlock& w = weights.blocks[static_cast<size_t>(i)];
    const bool full = std::ranges::find(c.full_attention_blocks, i) != c.full_attention_blocks.end();
    const auto& lengths = full ? std::vector<int64_t>{grid.count()} : windows.lengths;
    h = h + attention(w.attention, c, ops::rms_norm(h, w.attention_norm, kNormEps), rope, lengths);
    h = h + mlp(w.mlp, ops::rms_norm(h, w.mlp_norm, kNormEps));
  }
  return {reorder(merge(weights.merger, c, h), 1, inverse(windows.order)), merged};
}

}  // namespace orrery::qwen_vl
