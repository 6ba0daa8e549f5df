#pragma once
#include <span>
#include <vector>

#include "orrery/config/plan.h"
#include "orrery/parallel/attention.h"

namespace orrery::parallel {

/// DeepSpeed-Ulysses (Jacobs et al. 2023): each rank of the ulysses group trades its tokens' share of other
/// heads for the other ranks' tokens of its own heads, attends with them (on a ring: to the blocks of all its
/// places) and trades the results back. Two exchanges over the group; those of all streams travel together. A
/// replicated stream's heads need no exchange on the way there.
///
/// In chunks of heads (not more than the heads of the fullest rank; uneven where they do not divide) it is as
/// many round trips: one after another, which divides the memory of what travels by their number, or with
/// the next chunk and the last results under way while one chunk is computed. Every rank makes the same
/// exchanges in the same order, even if its own share of a chunk is empty. Bits do not depend on the chunks.
std::vector<Tensor> ulysses_attention(const comm::Mesh& mesh, std::span<const Qkv> streams,
                                      const config::Chunks& chunks);

}  // namespace orrery::parallel
