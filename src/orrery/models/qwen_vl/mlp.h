#pragma once
#include "orrery/nn/linear.h"
#include "orrery/ops/silu_mul.h"

namespace orrery::qwen_vl {

/// The gated MLP of decoder and vision tower (SwiGLU: Shazeer, arXiv 2002.05202).
struct Mlp {
  nn::Linear gate, up, down;
};

template <class B>
void bind(B& b, Mlp& w, int64_t width, int64_t inner, nn::Bias bias = nn::Bias::kNo) {
  b("gate_proj", w.gate, inner, width, bias);
  b("up_proj", w.up, inner, width, bias);
  b("down_proj", w.down, width, inner, bias);
}

/// down(silu(gate(x)) · up(x)), [S, E].
inline Tensor mlp(const Mlp& w, const Tensor& x) {
  return nn::linear(w.down, ops::silu_mul(nn::linear(w.gate, x), nn::linear(w.up, x)));
}

}  // namespace orrery::qwen_vl
