#pragma once
#include "orrery/base/tensor.h"

namespace orrery::nn {

/// Sinusoidal embedding of times [R] float32 → [R, width] float32, cosines first:
/// [cos(s·(t·f_k)), sin(s·(t·f_k))], f_k = 10000^(−k/half), k = 0 … half−1, half = width/2 (spec
/// cosmos-predict2.5 §2.2, step 6; with a scale s, qwen-image §2.3).
Tensor timestep_embedding(const Tensor& times, int64_t width, double scale = 1);

}  // namespace orrery::nn
