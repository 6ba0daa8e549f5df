#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "orrery/comm/group.h"

namespace orrery::comm {

// Each is a few lines over Group::exchange, called by every rank of the group. A group of one returns its
// argument. Tensors passed in are given away (group.h); what comes back may share memory with what was passed
// in, here or on a peer.

/// The parts of all ranks, joined along `dim` in rank order. sizes[i]: how long rank i's part is in `dim` (0
/// allowed); the other dimensions and the dtype are those of `part`.
Tensor all_gather(Group& group, const Tensor& part, int64_t dim, std::span<const int64_t> sizes);

/// As all_gather on rank `root`; an undefined tensor on the others.
Tensor gather_to(Group& group, int root, const Tensor& part, int64_t dim, std::span<const int64_t> sizes);

/// Rank `root`'s tensor, of the given shape and dtype, on every rank; the others' `value` is not looked at.
Tensor broadcast(Group& group, int root, const Tensor& value, const TensorSpec& spec);

/// Rank 0's number on every rank: how a decision (seed, stop, skip) reaches all ranks. For a control group.
int64_t agree(Group& group, int64_t value);

/// A ring shift under way.
class Shift {
 public:
  Shift(std::unique_ptr<Exchange> exchange, int source) : exchange_(std::move(exchange)), source_(source) {}

  /// The message of the rank before; once. Compute between shift() and wait() overlaps the transfer.
  Message wait() { return std::move(exchange_->wait()[static_cast<size_t>(source_)]); }

 private:
  std::unique_ptr<Exchange> exchange_;
  int source_;
};

/// Sends `message` to the next rank of the ring and receives from the one before a message of the extents
/// `from`.
Shift shift(Group& group, Message message, const Extents& from);

}  // namespace orrery::comm
