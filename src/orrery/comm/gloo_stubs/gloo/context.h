#pragma once
#include <chrono>

// torch's wheel has gloo's code and c10d's header over it, but not gloo's own headers. These five declare
// what that header names, after gloo at the commits of torch 2.11 to 2.14, and define nothing: objects that
// include them refer to the symbols of libtorch_cpu.
namespace gloo {

namespace transport {
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds getTimeout() const;
};

}  // namespace gloo
