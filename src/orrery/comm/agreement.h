#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "orrery/base/error.h"
#include "orrery/comm/group.h"

namespace orrery::comm {

/// An error that every rank of the run throws at the same place: all of them know of it and can go on
/// together.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// For what all ranks have just agreed on.
template <class... Args>
[[noreturn]] void fail_together(ErrorKind kind, const Args&... args) {
  throw AgreedError(kind, concat(args...));
}

// Called by every rank of a control group, in the same order. Their errors are AgreedErrors.

/// Refuses ranks that do not agree on `what` ("request", "checkpoint"): Error of kind request on every rank
/// that names those whose hash differs from rank 0's.
void compare(Group& control, const std::string& what, uint64_t hash);

/// The same, of something that is written out.
void compare(Group& control, const std::string& what, std::string_view text);

/// Runs fn on every rank. If it threw an exception on any, every rank throws the error of the lowest such
/// rank: that rank as it is, the others with "rank N: " before it. So an error that one rank finds before a
/// collective ends all of them, each with the cause. fn makes no exchanges.
void together(Group& control, const std::function<void()>& fn);

}  // namespace orrery::comm
