#pragma once
#include <span>
#include <vector>

#include "orrery/comm/group.h"

namespace orrery::comm {

/// How many bytes a message of these extents takes packed: its tensors one after the other, dense, each at a
/// multiple of 64 bytes.
int64_t packed_bytes(const Extents& extents);

/// The message as bytes, a copy: [packed_bytes], on the CPU. Error of kind internal if a tensor is elsewhere.
Tensor pack(const Message& message);

/// The tensors in `bytes`, [packed_bytes(extents)] and aligned to 64 bytes, as views of it.
Message unpack(const Tensor& bytes, const Extents& extents);

}  // namespace orrery::comm
