#pragma once
#include <span>
#include <vector>

#include "orrery/base/tensor.h"
#include "orrery/parallel/context.h"

namespace orrery::parallel {

/// One stream of tokens in an attention: this rank's queries, keys and values, [S_r, N, D] each with all N
/// heads and one dtype. Sharded: S_r is what shard() (run.h) gives this rank of `length` tokens. Replicated:
/// every rank holds all `length` tokens, with equal bits.
struct Qkv {
  Tensor q, k, v;
  int64_t length;
  bool replicated = false;
};

/// Full attention among all tokens of all streams, each counted once: the joint attention of a transformer
/// with a text and an image stream, or, of one stream, self-attention. Keys are met in the order of the
/// streams and of their tokens, whatever the shards; replicated streams come first. One result per stream,
/// laid out like its q. Every rank of the sequence group makes the call. Tokens and heads may be split
/// unevenly; shards and shares of heads may be empty.
///
/// The mesh decides how: of one rank it is ops::attention. Ulysses (Jacobs et al. 2023) exchanges heads for
/// tokens before and tokens for heads after, in one message each, whole or in chunks of heads (ctx.tuning).
/// Ring (Liu et al. 2023) passes blocks of keys and values around. Both together: Ulysses inside each place
/// of the ring. Float32 bits do not depend on the number of Ulysses ranks nor on chunks; a ring adds partial
/// results in another order (docs/numerics.md). A replicated stream's result has the same bits on every rank.
std::vector<Tensor> attention(const Context& ctx, std::span<const Qkv> streams);

/// Self-attention over a sequence of `length` tokens of which this rank holds its shard: [S_r, N, D].
Tensor attention(const Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, int64_t length);

}  // namespace orrery::parallel
