#pragma once
#include <span>
#include <vector>

#include "orrery/comm/mesh.h"
#include "orrery/parallel/attention.h"

namespace orrery::parallel {

/// The tokens of a sharded stream that place `ring` of the ring holds: those of its Ulysses ranks, which are
/// neighbours.
comm::Range ring_block(const comm::MeshShape& mesh, int64_t length, int ring);

/// Ring attention (Liu et al. 2023): every place of the ring attends with its queries to the keys and values
/// of all places, which travel around in ring.size() − 1 exchanges, k and v in one message. The next block
/// travels while the present one is attended to. Partial results are merged in float32 (ops::merge); places
/// without tokens send nothing. On a ring of one this is ops::attention.
///
/// streams: [S_b, n, D] each, S_b = ring_block() of this place for a sharded stream, all tokens for a
/// replicated one, and the same n heads on every place. A replicated stream's keys do not travel: they join
/// the block of place 0 wherever that is met. Its queries are shared among the places and the results
/// gathered, one more exchange per such stream, so that they are computed once and equal everywhere.
std::vector<Tensor> ring_attention(const comm::Mesh& mesh, std::span<const Qkv> streams);

/// The pieces in order along dimension 0, without a copy if there is but one.
Tensor joined(const std::vector<Tensor>& pieces);

}  // namespace orrery::parallel
