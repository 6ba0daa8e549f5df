#pragma once
#include "orrery/base/tensor.h"

namespace orrery::ops {

/// Attention over a set of keys, and the logarithm of its softmax denominator, with which results over
/// disjoint sets of keys merge exactly (FlashAttention-2, Dao 2023, §3.1).
struct PartialAttention {
  Tensor out;  // [Sq, N, D], dtype of q
  Tensor lse;  // [Sq, N] float32, natural logarithm; −∞ where there are no keys
};

/// softmax(scale · q kᵀ) v for each head. q: [Sq, N, D], k and v: [Sk, M, D] with M dividing N: key head j
/// serves the query heads j·N/M … (j+1)·N/M − 1. causal: query i sees keys 0 … i + Sk − Sq. No other mask
/// exists. scale 0 means 1/√D. Strides are free except that the last dimension is contiguous. Empty inputs
/// give zeros. float32 or bfloat16; row-invariant in the queries and in the heads at float32
/// (docs/numerics.md).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale = 0, bool causal = false);

/// The same with its log-sum-exp.
PartialAttention partial_attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale = 0,
                                   bool causal = false);

/// Adds keys: `into`, over one set of keys, becomes the attention over its union with the disjoint set of
/// `more`. Shapes are equal. Computed, and from then on kept, in float32; `into` is overwritten. Which of the
/// two has which keys changes rounding only. Rows without keys on both sides stay without.
void merge(PartialAttention& into, const PartialAttention& more);

namespace reference {
PartialAttention attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal);
}  // namespace reference

}  // namespace orrery::ops
