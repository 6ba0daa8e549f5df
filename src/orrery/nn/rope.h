#pragma once
#include <array>
#include <span>

#include "orrery/base/tensor.h"

namespace orrery::nn {

/// ω_j = θ^(−2j/dim), j = 0 … dim/2−1, θ = 10000 · ratio^(dim/(dim−2)), float32 → [dim/2].
Tensor rope_frequencies(int64_t dim, double ratio, bool bf16_exponents);

// Tables are [S, D] float32, cosines in the first half of each row and sines in the second; a token's D/2
// angles are those of frame, row and column one after the other.

/// How the rotary angles of a video token follow from its (frame, row, column).
struct VideoRope {
  int64_t head_dim = 128;
  std::array<double, 3> ratio = {1, 3, 3};  // NTK extrapolation of the (frame, row, column) axes
  bool bf16_exponents = false;  // the official model rounds 2j/dim to bfloat16 (spec cosmos-predict2.5 §2.4)
};

/// The table for a grid of frames × rows × columns, tokens in that order.
Tensor video_rope(const VideoRope& rope, int64_t frames, int64_t rows, int64_t columns);

/// How many of a head's channels (frame, row, column) rotate; even, D together.
using RopeAxes = std::array<int64_t, 3>;

/// A picture in tokens.
struct PictureSize {
  int64_t rows, columns;
  int64_t tokens() const { return rows * columns; }
  bool operator==(const PictureSize&) const = default;
};

/// MSRoPE of Qwen-Image (arXiv 2508.02324; spec qwen-image §2.6) for the tokens of several pictures, one
/// picture after the other. Picture i is frame i; rows and columns are counted from its middle, so that an
/// odd size has one more below zero.
Tensor picture_rope(const RopeAxes& axes, std::span<const PictureSize> pictures);

/// MSRoPE for `length` tokens of text beside these pictures: the same position on all axes, counted from
/// half of the largest picture's longer side.
Tensor text_rope(const RopeAxes& axes, std::span<const PictureSize> pictures, int64_t length);

}  // namespace orrery::nn
