#pragma once
// Vectors of floats and what kernels do with them, in GCC's vector extensions: the compiler splits a vector
// that is wider than the target's registers. All functions here are inlined into functions with a target
// attribute (isa.h).
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>

#include "orrery/ops/cpu/isa.h"

// The warning is about the calling convention of vector arguments; these functions are never called, only
// inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace orrery::ops::cpu {

template <int kWidth>
struct Lanes {
  typedef float Float __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
  typedef int32_t Int __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
  typedef uint32_t Bits __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
  typedef uint16_t Half __attribute__((vector_size(2 * kWidth), aligned(2), may_alias));
};

template <int W>
using Floats = typename Lanes<W>::Float;

template <int W>
ORRERY_INLINE Floats<W> load(const float* from) {
  return *reinterpret_cast<const Floats<W>*>(from);
}

template <int W>
ORRERY_INLINE Floats<W> load(const c10::BFloat16* from) {
  using Bits = typename Lanes<W>::Bits;
  const auto half = *reinterpret_cast<const typename Lanes<W>::Half*>(from);
  return reinterpret_cast<Floats<W>>(__builtin_convertvector(half, Bits) << 16);
}

template <int W>
ORRERY_INLINE Floats<W> load(const c10::Half* from) {
  using Bits = typename Lanes<W>::Bits;
  const Bits bits = __builtin_convertvector(*reinterpret_cast<const typename Lanes<W>::Half*>(from), Bits);
  // Moving the exponent field from 5 to 8 bits leaves it 112 too small; the multiplication is exact,
  // subnormals included.
  const Bits magnitude =
      reinterpret_cast<Bits>(reinterpret_cast<Floats<W>>((bits & 0x7fff) << 13) * 0x1p112f);
  const Bits special =
      (bits & 0x7c00) == 0x7c00 ? Bits{} + 0x7f800000u : Bits{};  // infinity and NaN keep their exponent
  return reinterpret_cast<Floats<W>>(magnitude | special | ((bits & 0x8000) << 16));
}

template <int W>
ORRERY_INLINE void store(float* to, const Floats<W>& v) {
  *reinterpret_cast<Floats<W>*>(to) = v;
}

/// Rounded to nearest, ties to even; NaN stays NaN.
template <int W>
ORRERY_INLINE void store(c10::BFloat16* to, const Floats<W>& v) {
  using Bits = typename Lanes<W>::Bits;
  const Bits bits = reinterpret_cast<Bits>(v);
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Bits kept = v == v ? rounded : Bits{} + 0x7fc0u;
  *reinterpret_cast<typename Lanes<W>::Half*>(to) = __builtin_convertvector(kept, typename Lanes<W>::Half);
}

/// The first `count` elements, zeros behind them; all W if count ≥ W. A kernel's arithmetic is the same on a
/// row's last, incomplete vector as on the others, so an element's bits do not depend on its place.
template <int W, class T>
ORRERY_INLINE Floats<W> load(const T* from, int64_t count) {
  if (count >= W) return load<W>(from);
  T padded[W] = {};
  std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(T));
  return load<W>(padded);
}

template <int W, class T>
ORRERY_INLINE void store(T* to, const Floats<W>& v, int64_t count) {
  if (count >= W) return store<W>(to, v);
  T padded[W];
  store<W>(padded, v);
  std::memcpy(to, padded, static_cast<size_t>(count) * sizeof(T));
}

template <int W>
ORRERY_INLINE Floats<W> larger(const Floats<W>& a, const Floats<W>& b) {
  return a > b ? a : b;
}

/// The sum in a fixed order: halves are folded together.
template <int W>
ORRERY_INLINE float sum(const Floats<W>& v) {
  float lanes[W];
  store<W>(lanes, v);
#pragma GCC unroll 4
  for (int half = W / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <int W>
ORRERY_INLINE float largest(const Floats<W>& v) {
  float lanes[W];
  store<W>(lanes, v);
#pragma GCC unroll 4
  for (int half = W / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
  return lanes[0];
}

/// 2^(n + rest) where `shifted` is n + 1.5·2²³, whose low bits are n; |rest| ≤ 1/2, and n + rest in [−126,
/// 128).
template <int W>
ORRERY_INLINE Floats<W> power_of_two(const Floats<W>& shifted, const Floats<W>& rest) {
  using Int = typename Lanes<W>::Int;
  // Taylor series of e^(rest · ln 2); the first term left out is below 6e-9.
  Floats<W> p = rest * 1.5252733804e-5f + 1.5403530393e-4f;
  p = p * rest + 1.3333558146e-3f;
  p = p * rest + 9.6181291076e-3f;
  p = p * rest + 5.5504108665e-2f;
  p = p * rest + 2.4022650696e-1f;
  p = p * rest + 6.9314718056e-1f;
  p = p * rest + 1.0f;
  return reinterpret_cast<Floats<W>>(reinterpret_cast<Int>(p) + (reinterpret_cast<Int>(shifted) << 23));
}

/// Adding it rounds to an integer, which then stands in the low bits of the sum.
constexpr float kRounder = 12582912.0f;  // 1.5·2²³

/// 2^x within 2 units in the last place; 0 below −126 (no subnormals), ∞ from 128, exactly 1 at 0. NaN stays
/// NaN.
template <int W>
ORRERY_INLINE Floats<W> exp2(const Floats<W>& x) {
  const Floats<W> zero = {}, least = zero - 126.0f, most = zero + 0x1.fffffep6f;
  Floats<W> inside = x < least ? least : x;
  inside = inside > most ? most : inside;
  const Floats<W> shifted = inside + kRounder;
  const Floats<W> power = power_of_two<W>(shifted, inside - (shifted - kRounder));
  return x < least ? zero : x > most ? zero + __builtin_inff() : power;
}

/// e^x within 2 units in the last place; 0 below −87.3 (no subnormals), ∞ from 88.72. NaN stays NaN.
template <int W>
ORRERY_INLINE Floats<W> exp(const Floats<W>& x) {
  const Floats<W> zero = {}, least = zero - 87.3f, most = zero + 88.72f;
  Floats<W> inside = x < least ? least : x;
  inside = inside > most ? most : inside;
  const Floats<W> shifted = inside * 1.44269504f + kRounder;
  // ln 2 in two parts (Cody and Waite): n times the first is exact, so the difference loses nothing, with or
  // without FMA.
  const Floats<W> n = shifted - kRounder;
  const Floats<W> rest = ((inside - n * 0.693359375f) + n * 2.12194440e-4f) * 1.44269504f;
  const Floats<W> power = power_of_two<W>(shifted, rest);
  return x < least ? zero : x > most ? zero + __builtin_inff() : power;
}

template <int W>
ORRERY_INLINE Floats<W> sigmoid(const Floats<W>& x) {
  return 1.0f / (1.0f + exp<W>(-x));
}

/// erf within 1.5 units in the last place (after N. Juffa): two minimax polynomials, and 1 − e^p(|x|) for the
/// larger arguments.
template <int W>
ORRERY_INLINE Floats<W> erf(const Floats<W>& x) {
  using Bits = typename Lanes<W>::Bits;
  const Bits sign = reinterpret_cast<Bits>(x) & 0x80000000u;
  const Floats<W> size = reinterpret_cast<Floats<W>>(reinterpret_cast<Bits>(x) & 0x7fffffffu), square = x * x;
  Floats<W> far =
      (size * -1.72853470e-5f + 3.83197126e-4f) * square + (size * -3.88396438e-3f + 2.42546219e-2f);
  far = far * size - 1.06777877e-1f;
  far = far * size - 6.34846687e-1f;
  far = far * size - 1.28717512e-1f;
  far = far * size - size;
  far = 1.0f - exp<W>(far);
  far = reinterpret_cast<Floats<W>>(reinterpret_cast<Bits>(far) | sign);
  Floats<W> near = square * -5.96761703e-4f + 4.99119423e-3f;
  near = near * square - 2.67681349e-2f;
  near = near * square + 1.12819925e-1f;
  near = near * square - 3.76125336e-1f;
  near = near * square + 1.28379166e-1f;
  near = near * x + x;
  return size > Floats<W>{} + 0.927734375f ? far : near;
}

}  // namespace orrery::ops::cpu
