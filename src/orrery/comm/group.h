#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::comm {

/// Tensors that travel together (q, k and v; k and v). Transports that copy pack them; thread ranks hand them
/// over. What arrives may be a view with strides. No tensors: an empty message, which costs nothing.
using Message = std::vector<Tensor>;

/// Shapes and dtypes of a message. Both sides compute them from sizes that all ranks know; they are never
/// exchanged.
using Extents = std::vector<TensorSpec>;

Extents extents_of(const Message& message);

/// "[Float [2, 3], Long [1]]", for error messages.
std::string to_string(const Extents& extents);

/// An exchange under way. It may be dropped without a wait, when an exception unwinds.
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Orders the caller's stream (on a CPU: the caller) after the arrival and returns the messages, [i] from
  /// rank i; once. Error of kind peer if a rank has failed, and then for every other wait and exchange of the
  /// process group too.
  virtual std::vector<Message> wait() = 0;
};

/// One axis of the mesh, seen from one rank. Everything else is a free function over `exchange`
/// (collectives.h). Every rank makes the same calls in the same order. One thread at a time uses a group.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends to[i] to rank i and receives from every rank i a message of the extents from[i], the own rank
  /// included. Does not wait for anybody: the exchange that is returned does. Tensors passed in are given
  /// away: neither side writes to them afterwards. Errors: internal (a peer's message has other extents; both
  /// ranks are named), peer (a rank has failed).
  virtual std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) = 0;
};

}  // namespace orrery::comm
