#pragma once
#include <cstdint>

namespace orrery::sample {

/// The seed of a chunk's noise from that of the chunk before, or from the request's for the first (spec
/// cosmos-transfer2.5 §4.3): Python's random.seed(seed); random.randint(0, 1000000). Error of kind request
/// unless 0 ≤ seed < 2³².
int64_t next_chunk_seed(int64_t seed);

}  // namespace orrery::sample
