#pragma once
#include "orrery/nn/linear.h"

namespace orrery::nn {

/// The low-rank head that turns a time embedding into shift, scale and gate: up · (down · x), nothing in
/// between.
struct Modulation {
  Linear down, up;
};

template <class B>
void bind(B& b, Modulation& w, int64_t out, int64_t rank, int64_t in) {
  b("linear_1", w.down, rank, in);
  b("linear_2", w.up, out, rank);
}

inline Tensor modulation(const Modulation& w, const Tensor& x) { return linear(w.up, linear(w.down, x)); }

}  // namespace orrery::nn
