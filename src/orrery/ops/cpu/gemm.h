#pragma once
#include "orrery/base/tensor.h"
#include "orrery/ops/linear.h"

namespace orrery::ops::cpu {

/// A matrix whose rows are contiguous: float32, bfloat16 or float16.
struct Matrix {
  const void* data;
  at::ScalarType dtype;
  int64_t rows, stride;  // stride in elements
};

/// y = activation(x · wᵀ + bias) with float32 arithmetic whatever the dtypes: operands are widened as they
/// are packed, in panels that fit the caches, and the result is rounded once. x: [M, depth], w: [N, depth],
/// bias: N floats or null, y: [M, N] contiguous, float32 or bfloat16; M, N, depth > 0. Each element is a sum
/// over depth in blocks of kDepthBlock, in ascending order: its bits depend on its own row of x and row of w
/// alone, not on M, N, the thread count, the vector width or how the operands are stored. Runs on
/// at::get_num_threads() threads; each keeps a buffer of at most 2 MB, the caller one of at most 32 MB.
void gemm(const Matrix& x, const Matrix& w, int64_t depth, const float* bias, Activation activation, void* y,
          at::ScalarType y_dtype);

/// Long enough to amortise the tile's way to memory, short enough that a panel of w stays in the first
/// caches.
constexpr int64_t kDepthBlock = 384;

}  // namespace orrery::ops::cpu
