#pragma once
// The inner loop of matrix products: a tile of the result lives in registers while the operands' rows stream
// by (K. Goto, R. van de Geijn: Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008).
#include "orrery/ops/cpu/lanes.h"

namespace orrery::ops::cpu {

/// How many registers of a target hold the result: kRows × kVectors vectors. The rest hold one row of b and
/// an element of a.
template <int W>
struct TileShape;
template <>
struct TileShape<16> {
  static constexpr int kRows = 8, kVectors = 3;  // 24 of 32 registers
};
template <>
struct TileShape<8> {
  static constexpr int kRows = 4, kVectors = 3;  // 12 of 16
};
template <>
struct TileShape<4> {
  static constexpr int kRows = 4, kVectors = 2;  // 8 of 16
};

/// Rows of the left operand that are packed together, on every target.
constexpr int kPanelRows = 8;

/// Columns of the right operand that are packed together.
template <int W>
constexpr int kPanelColumns = W* TileShape<W>::kVectors;

/// c (+)= a · b for kRows rows and kVectors·W columns. a[r · kRowStep + k · kDepthStep], b[k · b_stride +
/// column]. Each element of the result is the sum over k in ascending order, in one register: its bits depend
/// on nothing else.
template <int W, int kRows, int kVectors, int kRowStep, int kDepthStep>
ORRERY_INLINE void tile_of(int64_t depth, const float* a, const float* b, int64_t b_stride, float* c,
                           int64_t c_stride, bool add) {
  Floats<W> sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) sums[r][j] = Floats<W>{};
  for (int64_t k = 0; k < depth; ++k) {
    // The next panel of a follows the packed one; it comes from far, while b and c are near.
    if constexpr (kRowStep == 1) __builtin_prefetch(a + (depth + k) * kDepthStep, 0, 2);
    Floats<W> row[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) row[j] = load<W>(b + k * b_stride + j * W);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sums[r][j] += a[r * kRowStep + k * kDepthStep] * row[j];
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      float* to = c + r * c_stride + j * W;
      store<W>(to, add ? load<W>(to) + sums[r][j] : sums[r][j]);
    }
}

/// c (+)= a · b for kPanelRows rows and `vectors` ≤ TileShape<W>::kVectors vectors of columns.
template <int W, int kRowStep, int kDepthStep>
ORRERY_INLINE void tile(int vectors, int64_t depth, const float* a, const float* b, int64_t b_stride,
                        float* c, int64_t c_stride, bool add) {
  constexpr int kRows = TileShape<W>::kRows;
  for (int r = 0; r < kPanelRows; r += kRows) {
    const float* from = a + r * kRowStep;
    float* to = c + r * c_stride;
    if (vectors == 1) tile_of<W, kRows, 1, kRowStep, kDepthStep>(depth, from, b, b_stride, to, c_stride, add);
    if (vectors == 2) tile_of<W, kRows, 2, kRowStep, kDepthStep>(depth, from, b, b_stride, to, c_stride, add);
    if constexpr (TileShape<W>::kVectors > 2)
      if (vectors == 3)
        tile_of<W, kRows, 3, kRowStep, kDepthStep>(depth, from, b, b_stride, to, c_stride, add);
  }
}

}  // namespace orrery::ops::cpu
