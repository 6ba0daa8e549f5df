#pragma once
// The visitor convention of weights. A model's weights are plain structs; for each struct one function
//
//   template <class B> void bind(B& b, Block& w, const Config& c) {
//     b("to_q", w.q, c.width, c.width);      // a nested struct: its bind(b, w.q, c.width, c.width) runs
//     under the prefix "to_q." b("norm.weight", w.norm, {c.width});   // a tensor: its name and the shape
//     that the configuration gives it b.list("blocks", w.blocks, c.layers, c);  // resized to c.layers; each
//     element under "blocks.0.", "blocks.1." …
//   }
//
// is the only place that knows names and shapes. Loading, checking and sizing are visitors over it
// (weights/visitors.h).
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/tensor.h"

namespace orrery::nn {

/// Base of every visitor: keeps the dotted name. Derived gives `void tensor(const std::string& name, Tensor&
/// t, const Shape& shape)`.
template <class Derived>
class Visitor {
 public:
  void operator()(std::string_view name, Tensor& t, const Shape& shape) {
    self().tensor(prefix_ + std::string(name), t, shape);
  }

  template <class W, class... Args>
  void operator()(std::string_view name, W& w, const Args&... args) {
    const size_t length = prefix_.size();
    prefix_.append(name).append(".");
    bind(self(), w, args...);
    prefix_.resize(length);
  }

  template <class W, class... Args>
  void list(std::string_view name, std::vector<W>& items, int64_t count, const Args&... args) {
    items.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) (*this)(concat(name, ".", i), items[static_cast<size_t>(i)], args...);
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  std::string prefix_;
};

}  // namespace orrery::nn
