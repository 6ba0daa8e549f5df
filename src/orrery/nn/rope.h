#pragma once
#include <array>

#include "orrery/base/tensor.h"

namespace orrery::nn {

/// How the rotary angles of a video token follow from its (frame, row, column).
struct VideoRope {
  int64_t head_dim = 128;
  std::array<double, 3> ratio = {1, 3, 3};  // NTK extrapolation of the (frame, row, column) axes
  bool bf16_exponents = false;  // the official model rounds 2j/dim to bfloat16 (spec cosmos-predict2.5 §2.4)
};

/// ω_j = θ^(−2j/dim), j = 0 … dim/2−1, θ = 10000 · ratio^(dim/(dim−2)), float32 → [dim/2].
Tensor rope_frequencies(int64_t dim, double ratio, bool bf16_exponents);

/// The table for a grid of frames × rows × columns, tokens in that order: [S, D] float32, cosines in the
/// first half of each row and sines in the second; the D/2 angles are those of frame, row and column one
/// after the other.
Tensor video_rope(const VideoRope& rope, int64_t frames, int64_t rows, int64_t columns);

}  // namespace orrery::nn
