#pragma once
#include <cstdint>

#include "orrery/comm/mesh_shape.h"

namespace orrery::parallel {

/// A self-attention: so many tokens and heads of so many channels, in elements of so many bytes; in joint
/// attention beside so many replicated ones.
struct AttentionSize {
  int64_t tokens, heads, head_dim, element_bytes;
  int64_t replicated = 0;
};

/// What something costs one rank.
struct Cost {
  int64_t bytes = 0;      // that it sends to others
  int64_t exchanges = 0;  // in which it takes part
  double flops = 0;       // multiplications and additions
  Cost& operator+=(const Cost& other);
};
Cost operator*(int64_t times, Cost cost);

/// What attention() (attention.h) costs `rank` of a mesh, with heads exchanged whole: to the byte. Only the
/// rank's place in its sequence group matters.
Cost attention_cost(const comm::MeshShape& mesh, int rank, const AttentionSize& size);

}  // namespace orrery::parallel
