#pragma once
#include "orrery/nn/bind.h"
#include "orrery/ops/linear.h"

namespace orrery::nn {

/// weight [out, in] in the checkpoint's or the compute dtype; bias [out] or undefined.
struct Linear {
  Tensor weight, bias;
};

enum class Bias : bool { kNo, kYes };

template <class B>
void bind(B& b, Linear& w, int64_t out, int64_t in, Bias bias = Bias::kNo) {
  b("weight", w.weight, Shape{out, in});
  if (bias == Bias::kYes) b("bias", w.bias, Shape{out});
}

/// activation(x · weightᵀ + bias): ops::linear.
inline Tensor linear(const Linear& w, const Tensor& x, ops::Activation activation = ops::Activation::kNone) {
  return ops::linear(x, w.weight, w.bias.defined() ? std::optional<Tensor>(w.bias) : std::nullopt,
                     activation);
}

}  // namespace orrery::nn
