// huggingface/transformers, models/qwen2_5_vl/modeling_qwen2_5_vl.py (Qwen2_5_VLTextModel); full_concat:
// nvidia-cosmos/cosmos-predict2.5 50369b8d, the text encoder's wrapper. Spec qwen2.5-vl-text Part A.
#include "orrery/models/qwen_vl/text_model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/pow.h>

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/ops/attention.h"
#include "orrery/ops/rms_norm.h"

namespace orrery::qwen_vl {
namespace {

/// [S, D]: cosines, then sines of position · θ^(−2j/D), where frequency j turns with the time, the row or the
/// column of a token. For text these are one position.
Tensor rope_table(const TextConfig& c, const Tensor& positions) {
  const auto exponents = at::arange(0, c.head_dim, 2, at::kFloat) / static_cast<double>(c.head_dim);
  const auto frequencies = 1.0 / at::pow(at::Scalar(c.rope_theta), exponents);
  auto sections = c.rope_sections;
  if (sections == decltype(sections){}) sections[0] = c.head_dim / 2;
  std::vector<Tensor> angles;
  int64_t start = 0;
  for (size_t axis = 0; axis < sections.size(); ++axis) {
    angles.push_back(positions[static_cast<int64_t>(axis)].to(at::kFloat).unsqueeze(1) *
                     frequencies.narrow(0, start, sections[axis]));
    start += sections[axis];
  }
  const auto all = at::cat(angles, 1);
  return at::cat({all.cos(), all.sin()}, 1);
}

Tensor embed(const Tensor& table, std::span<const int32_t> ids, at::ScalarType dtype) {
  require(!ids.empty(), "the text has no tokens");
  auto index = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
  for (size_t i = 0; i < ids.size(); ++i) {
    require(ids[i] >= 0 && ids[i] < table.size(0), "token ", ids[i], " is not among the encoder's ",
            table.size(0));
    index.data_ptr<int64_t>()[i] = ids[i];
  }
  return table.index_select(0, index.to(table.device())).to(dtype);
}

/// Where the run of each picture begins.
std::vector<int64_t> image_starts(const TextConfig& c, std::span<const int32_t> ids,
                                  std::span<const EncodedImage> images) {
  const auto is_picture = [&](int32_t id) { return id == c.image_token; };
  std::vector<int64_t> starts;
  auto run = ids.begin();
  while ((run = std::find_if(run, ids.end(), is_picture)) != ids.end()) {
    require(starts.size() < images.size(), "the text has places for more pictures than the ", images.size(),
            " given");
    const int64_t rows = images[starts.size()].grid.count();
    const auto end = std::find_if_not(run, run + std::min(rows, ids.end() - run), is_picture);
    require(end - run == rows, "the text has ", end - run, " places for the ", rows, " rows of picture ",
            starts.size() + 1);
    starts.push_back(run - ids.begin());
    run = end;
  }
  require(starts.size() == images.size(), "the text has places for ", starts.size(), " of the ",
          images.size(), " pictures");
  return starts;
}

Tensor text_positions(int64_t length, std::span<const EncodedImage> images, std::span<const int64_t> starts) {
  auto out = at::empty({3, length}, at::kLong);
  auto* time = out.data_ptr<int64_t>();
  auto *row = time + length, *column = row + length;
  int64_t next = 0, s = 0;
  const auto text_until = [&](int64_t end) {
    for (; s < end; ++s) time[s] = row[s] = column[s] = next++;
  };
  for (size_t i = 0; i < images.size(); ++i) {
    const Grid grid = images[i].grid;
    text_until(starts[i]);
    for (int64_t y = 0; y < grid.rows; ++y)
      for (int64_t x = 0; x < grid.columns; ++x, ++s) time[s] = next, row[s] = next + y, column[s] = next + x;
    next += std::max(grid.rows, grid.columns);
  }
  text_until(length);
  return out;
}

Tensor attention(const Attention& w, const TextConfig& c, const Tensor& x, const Tensor& rope) {
  const auto heads = [&](const nn::Linear& to) { return nn::linear(to, x).unflatten(-1, {-1, c.head_dim}); };
  const auto q = ops::rms_norm_rope(heads(w.q), {}, rope, 0);
  const auto k = ops::rms_norm_rope(heads(w.k), {}, rope, 0);
  return nn::linear(w.o, ops::attention(q, k, heads(w.v), 0, /*causal=*/true).flatten(1));
}

}  // namespace

TextInput text_input(const TextWeights& weights, const TextConfig& c, std::span<const int32_t> ids,
                     std::span<const EncodedImage> images, at::ScalarType dtype) {
  TextInput input{embed(weights.embedding, ids, dtype), {}};
  const auto starts = images.empty() ? std::vector<int64_t>() : image_starts(c, ids, images);
  if (!images.empty() && c.rope_sections == decltype(c.rope_sections){})
    fail(ErrorKind::kCheckpoint,
         "the text encoder's configuration has no mrope_section, which pictures need");
  for (size_t i = 0; i < images.size(); ++i) {
    const Tensor& rows = images[i].rows;
    if (rows.size(1) != c.hidden_size)
      fail(ErrorKind::kCheckpoint, "the vision tower gives rows of ", rows.size(1),
           "; the text decoder takes ", c.hidden_size);
    input.embeddings.narrow(0, starts[i], rows.size(0)).copy_(rows);
  }
  input.positions = text_positions(input.embeddings.size(0), images, starts);
  return input;
}

void run_text(const TextWeights& weights, const TextConfig& c, const TextInput& input,
              const HiddenStates& each) {
  auto h = input.embeddings;
  const auto rope = rope_table(c, input.positions).to(h.device());
  each(0, h);
  for (int64_t i = 1; i <= c.layers; ++i) {
    const Layer& w = weights.layers[static_cast<size_t>(i - 1)];
    h = h + attention(w.attention, c, ops::rms_norm(h, w.attention_norm, c.rms_norm_eps), rope);
    h = h + mlp(w.mlp, ops::rms_norm(h, w.mlp_norm, c.rms_norm_eps));
    if (i < c.layers) each(i, h);
  }
  each(c.layers, ops::rms_norm(h, weights.norm, c.rms_norm_eps));
}

void run_text(const TextWeights& weights, const TextConfig& c, std::span<const int32_t> ids,
              at::ScalarType dtype, const HiddenStates& each) {
  run_text(weights, c, text_input(weights, c, ids, {}, dtype), each);
}

Tensor last_hidden_state(const TextWeights& weights, const TextConfig& c, const TextInput& input) {
  Tensor last;
  run_text(weights, c, input, [&](int64_t i, const Tensor& state) {
    if (i == c.layers) last = state;
  });
  return last;
}

Tensor cosmos_embeddings(const TextWeights& weights, const TextConfig& c, std::span<const int32_t> ids,
                         at::ScalarType dtype) {
  const auto length = static_cast<int64_t>(ids.size());
  auto out = at::empty({length, c.layers * c.hidden_size}, weights.embedding.options().dtype(dtype));
  run_text(weights, c, ids, dtype, [&](int64_t i, const Tensor& h) {
    if (i == 0) return;
    const auto mean = h.mean(-1, /*keepdim=*/true);
    const auto deviation = h.std(-1, /*unbiased=*/true, /*keepdim=*/true);
    out.narrow(1, (i - 1) * c.hidden_size, c.hidden_size).copy_((h - mean) / (deviation + 1e-8));
  });
  return out;
}

}  // namespace orrery::qwen_vl
