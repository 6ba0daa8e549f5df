#pragma once
#include "orrery/ops/cpu/lanes.h"

namespace orrery::ops::cpu {

/// Transposes eight rows of eight.
ORRERY_INLINE void transpose8(Floats<8> (&row)[8]) {
  Floats<8> pair[8], quad[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = __builtin_shufflevector(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pair[i + 1] = __builtin_shufflevector(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      quad[i + 2 * j] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      quad[i + 2 * j + 1] = __builtin_shufflevector(pair[i + j], pair[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    row[i] = __builtin_shufflevector(quad[i], quad[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    row[i + 4] = __builtin_shufflevector(quad[i], quad[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

/// to[k · width + i] = float(from[i · stride + k]) for rows i < rows and k < depth, and 0 for rows … width −
/// 1: the form in which tile() reads its operands. `width` is a multiple of 8.
template <class T>
ORRERY_INLINE void pack(const T* from, int64_t stride, int64_t rows, int64_t depth, float* to,
                        int64_t width) {
  for (int64_t i = 0; i < width; i += 8)
    for (int64_t k = 0; k < depth; k += 8) {
      Floats<8> block[8];
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r)
        block[r] = i + r < rows ? load<8>(from + (i + r) * stride + k, depth - k) : Floats<8>{};
      transpose8(block);
      const int64_t count = depth - k < 8 ? depth - k : 8;
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r)
        if (r < count) store<8>(to + (k + r) * width + i, block[r]);
    }
}

}  // namespace orrery::ops::cpu
