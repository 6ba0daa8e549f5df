#pragma once
#include <functional>
#include <span>

#include "orrery/models/qwen_vl/image.h"
#include "orrery/models/qwen_vl/weights.h"

namespace orrery::qwen_vl {

/// Hears hidden state i of 0 … L, [S, E], in order: 0 is the embeddings, i the residual stream after layer i,
/// and L the last after the final norm, as transformers' output_hidden_states counts them. It may keep the
/// tensor, and throw to stop.
using HiddenStates = std::function<void(int64_t i, const Tensor& state)>;

/// A sequence as the decoder takes it.
struct TextInput {
  Tensor embeddings;  // [S, E] in the compute dtype
  Tensor positions;   // [3, S] int64: time, row and column of each token (spec §7.6)
};

/// Ids to embeddings; of the table only the rows in use are read. With pictures, each run of
/// config.image_token is one of them, in order, and takes its rows; tokens of a picture have one time and
/// differ in row and column, and the text behind it goes on after the largest of its positions (transformers
/// 4; transformers 5 does so only if asked to). Without pictures that id is one like others, and all
/// positions are 0 … S−1. Errors: request if there are no ids, one has no row, or the runs are not those of
/// the pictures; checkpoint if the configuration has no rope_sections for pictures, or their rows are not of
/// width E.
TextInput text_input(const TextWeights& weights, const TextConfig& config, std::span<const int32_t> ids,
                     std::span<const EncodedImage> images, at::ScalarType dtype);

/// Runs the decoder over one sequence without padding mask: causal attention, to pieces of pictures as to
/// text. Computes in the dtype of the input (float32 or bfloat16) from weights of any type, which are left
/// where they are (mapped files included). In bfloat16, norms and rotation are rounded once, where the
/// reference rounds their intermediate steps too.
void run_text(const TextWeights& weights, const TextConfig& config, const TextInput& input,
              const HiddenStates& each);

/// The same over ids alone. Errors of text_input.
void run_text(const TextWeights& weights, const TextConfig& config, std::span<const int32_t> ids,
              at::ScalarType dtype, const HiddenStates& each);

/// The last hidden state alone, [S, E]: what Qwen-Image conditions on.
Tensor last_hidden_state(const TextWeights& weights, const TextConfig& config, const TextInput& input);

/// What Cosmos-Predict2.5 conditions on ("full_concat", spec cosmos-predict2.5 §4.4): hidden states 1 … L,
/// each brought to mean 0 and deviation 1 (unbiased) over its E channels, side by side: [S, L·E] in `dtype`.
/// Statistics are taken and rounded in `dtype`, as the official code does. Errors of run_text.
Tensor cosmos_embeddings(const TextWeights& weights, const TextConfig& config, std::span<const int32_t> ids,
                         at::ScalarType dtype);

}  // namespace orrery::qwen_vl
