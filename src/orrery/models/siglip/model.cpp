// huggingface/transformers, models/siglip2/modeling_siglip2.py (Siglip2VisionModel without its head). Spec
// cosmos-transfer2.5 §2.4.
#include "orrery/models/siglip/model.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "orrery/base/error.h"
#include "orrery/ops/attention.h"
#include "orrery/ops/modulate.h"
#include "orrery/weights/source.h"

namespace orrery::siglip {
namespace {

/// A modulation that is the same for every row. (Weights from ½ to 2 are exact less 1, others to 6e-8.)
Tensor layer_norm(const LayerNorm& w, const Config& c, const Tensor& x) {
  const auto shift = w.bias.to(at::kFloat).unsqueeze(0), weight = w.weight.to(at::kFloat).unsqueeze(0);
  const auto row = at::zeros({x.size(0)}, x.options().dtype(at::kInt));
  return ops::layer_norm_modulate(x, shift, weight - 1, row, c.norm_eps);
}

/// Every row attends to the first `valid`.
Tensor attention(const Attention& w, const Config& c, const Tensor& x, int64_t valid) {
  const auto heads = [&](const nn::Linear& projection, const Tensor& rows) {
    return nn::linear(projection, rows).unflatten(-1, {c.heads, -1});
  };
  const auto seen = x.narrow(0, 0, valid);
  return nn::linear(w.out, ops::attention(heads(w.q, x), heads(w.k, seen), heads(w.v, seen)).flatten(1));
}

Tensor mlp(const Layer& w, const Tensor& x) {
  return nn::linear(w.down, nn::linear(w.up, x, ops::Activation::kGeluTanh));
}

}  // namespace

Tensor positions(const Weights& weights, const Config& c, Grid grid) {
  const auto table = weights.positions.to(at::kFloat).view({c.table_side, c.table_side, c.width});
  const auto fitted = at::_upsample_bilinear2d_aa(table.permute({2, 0, 1}).unsqueeze(0),
                                                  {grid.rows, grid.columns}, /*align_corners=*/false)[0]
                          .flatten(1)
                          .permute({1, 0});
  const auto padding = fitted.narrow(0, 0, 1).repeat_interleave(c.max_patches - grid.count(), 0);
  return at::cat({fitted, padding});
}

Tensor run_tower(const Weights& weights, const Config& c, const ImagePatches& patches, at::ScalarType dtype,
                 const HiddenStates& each) {
  const int64_t valid = patches.grid.count();
  ensure(valid > 0 && valid <= c.max_patches &&
             patches.values.sizes() == at::IntArrayRef({c.max_patches, c.patch_features()}),
         "vision tower: expected [", c.max_patches, ", ", c.patch_features(), "] and a grid within, got ",
         patches.values.sizes(), " for ", patches.grid.rows, " × ", patches.grid.columns, " patches");
  const auto tell = [&](int64_t i, const Tensor& state) {
    if (each) each(i, state);
  };
  const auto x = patches.values.to(weights.positions.device(), dtype);
  auto h = nn::linear(weights.patches, x) + positions(weights, c, patches.grid).to(dtype);
  tell(0, h);
  for (int64_t i = 0; i < c.layers; ++i) {
    const Layer& w = weights.layers[static_cast<size_t>(i)];
    h = h + attention(w.attention, c, layer_norm(w.attention_norm, c, h), valid);
    h = h + mlp(w, layer_norm(w.mlp_norm, c, h));
    tell(i + 1, h);
  }
  return layer_norm(weights.norm, c, h);
}

Weights load_weights(weights::TensorMap tensors, const Config& config, at::ScalarType compute,
                     weights::Storage storage, const std::string& origin) {
  weights::Loader loader(std::move(tensors), compute, storage, origin);
  Weights w;
  loader("vision_model", w, config);
  loader.finish([](std::string_view name) {
    return name.starts_with("text_model.") || name.starts_with("vision_model.head.") ||
           name == "logit_scale" || name == "logit_bias";
  });
  return w;
}

Model open_model(const std::string& folder, at::ScalarType compute, weights::Storage storage) {
  const Config config = read_config(folder);
  return {config, load_weights(weights::open_weights(folder), config, compute, storage, folder), compute};
}

Tensor features(const Model& model, const media::Frames& picture, int64_t height, int64_t width) {
  return run_tower(model.weights, model.config, patches_of(model.config, picture, height, width),
                   model.compute);
}

}  // namespace orrery::siglip
