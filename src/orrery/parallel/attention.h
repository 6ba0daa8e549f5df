#pragma once
#include "orrery/base/tensor.h"
#include "orrery/parallel/context.h"

namespace orrery::parallel {

/// Full self-attention over a sequence of `length` tokens of which this rank holds the contiguous shard that
/// `shard()` (run.h) gave it. q, k, v: [S_r, N, D] with all N heads; the result is [S_r, N, D]. Tokens and
/// heads may be split unevenly and a shard may be empty. Heads are exchanged for tokens before and tokens for
/// heads after (DeepSpeed-Ulysses, Jacobs et al. 2023): two exchanges, q, k and v travelling together. Every
/// rank of the sequence group makes the call. The bits do not depend on the number of ranks.
Tensor attention(const Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, int64_t length);

}  // namespace orrery::parallel
