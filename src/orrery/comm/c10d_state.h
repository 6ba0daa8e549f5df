#pragma once
// For the files that see c10d's headers.
#include <c10/util/Exception.h>

#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "orrery/comm/c10d_store.h"

namespace orrery::comm {

struct Store::State {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

/// The first line of what libtorch or gloo says, without its backtrace.
inline std::string reason_of(const std::exception& e) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&e);
  const std::string text = of_torch ? of_torch->what_without_backtrace() : e.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace orrery::comm
