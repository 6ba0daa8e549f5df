#pragma once
#include <functional>
#include <span>

#include "orrery/models/qwen_vl/weights.h"

namespace orrery::qwen_vl {

/// Hears hidden state i of 0 … L, [S, E], in order: 0 is the embeddings, i the residual stream after layer i,
/// and L the last after the final norm, as transformers' output_hidden_states counts them. It may keep the
/// tensor, and throw to stop.
using HiddenStates = std::function<void(int64_t i, const Tensor& state)>;

/// Runs the decoder over one sequence without padding mask: causal attention, positions 0 … S−1. Computes in
/// `dtype` (float32 or bfloat16) from weights of any type, which are left where they are (mapped files
/// included); of the embedding only the rows in use are read. Error of kind request if the sequence is empty
/// or an id has no row. In bfloat16, norms and rotation are rounded once, where the reference rounds their
/// intermediate steps too.
void run_text(const TextWeights& weights, const TextConfig& config, std::span<const int32_t> ids,
              at::ScalarType dtype, const HiddenStates& each);

/// What Cosmos-Predict2.5 conditions on ("full_concat", spec cosmos-predict2.5 §4.4): hidden states 1 … L,
/// each brought to mean 0 and deviation 1 (unbiased) over its E channels, side by side: [S, L·E] in `dtype`.
/// Statistics are taken and rounded in `dtype`, as the official code does. Errors of run_text.
Tensor cosmos_embeddings(const TextWeights& weights, const TextConfig& config, std::span<const int32_t> ids,
                         at::ScalarType dtype);

}  // namespace orrery::qwen_vl
