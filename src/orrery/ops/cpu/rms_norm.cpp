#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <utility>

#include "orrery/ops/cpu/lanes.h"
#include "orrery/ops/cpu/rows.h"
#include "orrery/ops/rms_norm.h"

namespace orrery::ops::cpu {
namespace {

/// x seen as [rows, heads, width]; rms_norm has one head.
struct Job {
  const void* x;
  int64_t row_stride, head_stride, heads, width;
  const float *weight, *rope;  // [width] or null, [rows, width] or null
  float eps;
  bool adjacent;  // the pairs that rope rotates
  void* y;        // contiguous
};

template <class T>
struct RmsNormRope {
  /// Rows [begin, end) of rows × heads.
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / job->heads;
      const T* const x =
          static_cast<const T*>(job->x) + row * job->row_stride + i % job->heads * job->head_stride;
      T* const y = static_cast<T*>(job->y) + i * job->width;
      const float factor = job->weight ? inverse_rms<W>(x, job->width, job->eps) : 1;
      const float* const angles = job->rope ? job->rope + row * job->width : nullptr;
      if (angles && job->adjacent)
        rotate_adjacent<W>(x, job->weight, factor, angles, job->width / 2, y);
      else if (angles)
        rotate_halves<W>(x, job->weight, factor, angles, job->width / 2, y);
      else
        for (int64_t j = 0; j < job->width; j += W)
          store<W>(y + j, normal<W>(x, job->weight, factor, j, job->width), job->width - j);
    }
  }

  template <int W>
  static ORRERY_INLINE float inverse_rms(const T* x, int64_t width, float eps) {
    Floats<W> squares = {};
    for (int64_t j = 0; j < width; j += W) {
      const Floats<W> v = load<W>(x + j, width - j);
      squares += v * v;
    }
    return 1 / std::sqrt(sum<W>(squares) / static_cast<float>(width) + eps);
  }

  /// Elements [j, j + W) of the normalised row, which ends at `end`.
  template <int W>
  static ORRERY_INLINE Floats<W> normal(const T* x, const float* weight, float factor, int64_t j,
                                        int64_t end) {
    const Floats<W> v = load<W>(x + j, end - j) * factor;
    return weight ? v * load<W>(weight + j, end - j) : v;
  }

  template <int W>
  static ORRERY_INLINE void rotate_halves(const T* x, const float* weight, float factor, const float* angles,
                                          int64_t half, T* y) {
    for (int64_t j = 0; j < half; j += W) {
      const Floats<W> a = normal<W>(x, weight, factor, j, half),
                      b = normal<W>(x + half, weight ? weight + half : nullptr, factor, j, half);
      const Floats<W> cos = load<W>(angles + j, half - j), sin = load<W>(angles + half + j, half - j);
      store<W>(y + j, a * cos - b * sin, half - j);
      store<W>(y + half + j, b * cos + a * sin, half - j);
    }
  }

  /// W channels at a time, W/2 pairs.
  template <int W>
  static ORRERY_INLINE void rotate_adjacent(const T* x, const float* weight, float factor,
                                            const float* angles, int64_t half, T* y) {
    const Floats<W> sign = signs<W>(kLanes<W>);
    for (int64_t j = 0; j < 2 * half; j += W) {
      const int64_t pair = j / 2;
      const Floats<W> v = normal<W>(x, weight, factor, j, 2 * half);
      const Floats<W> cos = for_pairs<W>(load<W>(angles + pair, half - pair), kLanes<W>),
                      sin = for_pairs<W>(load<W>(angles + half + pair, half - pair), kLanes<W>);
      store<W>(y + j, v * cos + swapped<W>(v, kLanes<W>) * (sign * sin), 2 * half - j);
    }
  }

  template <int W>
  static constexpr std::make_integer_sequence<int, W> kLanes = {};

  /// −1, 1, −1, 1, …
  template <int W, int... kLane>
  static ORRERY_INLINE Floats<W> signs(std::integer_sequence<int, kLane...>) {
    return Floats<W>{(kLane % 2 ? 1.0f : -1.0f)...};
  }

  /// The first W/2 lanes, each twice.
  template <int W, int... kLane>
  static ORRERY_INLINE Floats<W> for_pairs(const Floats<W>& v, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, v, (kLane / 2)...);
  }

  /// Lanes 1, 0, 3, 2, …
  template <int W, int... kLane>
  static ORRERY_INLINE Floats<W> swapped(const Floats<W>& v, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, v, (kLane ^ 1)...);
  }
};

Tensor run(const Tensor& x, int64_t rows, int64_t heads, int64_t row_stride, int64_t head_stride,
           const std::optional<Tensor>& weight, const std::optional<Tensor>& rope, double eps, Pairs pairs) {
  Tensor y = at::empty(x.sizes(), x.options());
  if (y.numel() == 0) return y;
  const Tensor wide = weight ? weight->to(at::kFloat).contiguous() : Tensor(),
               angles = rope ? rope->contiguous() : Tensor();
  const Job job{x.const_data_ptr(),
                row_stride,
                head_stride,
                heads,
                x.size(-1),
                weight ? wide.const_data_ptr<float>() : nullptr,
                rope ? angles.const_data_ptr<float>() : nullptr,
                static_cast<float>(eps),
                pairs == Pairs::kAdjacent,
                y.data_ptr()};
  if (x.scalar_type() == at::kFloat)
    for_rows<RmsNormRope<float>>(rows * heads, job.width, job);
  else
    for_rows<RmsNormRope<c10::BFloat16>>(rows * heads, job.width, job);
  return y;
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  if (!has_kernel(x)) return reference::rms_norm(x, weight, eps);
  const Tensor rows = x.contiguous();
  return run(rows, rows.numel() / std::max<int64_t>(1, rows.size(-1)), 1, rows.size(-1), 0, weight, {}, eps,
             Pairs::kHalves);
}

Tensor rms_norm_rope(const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& rope,
                     double eps, int64_t pairs_code) {
  const auto pairs = static_cast<Pairs>(pairs_code);
  if (!has_kernel(x))
    return reference::rms_norm_rope(x, weight.value_or(Tensor()), rope.value_or(Tensor()), eps, pairs);
  const Tensor heads = x.stride(2) == 1 ? x : x.contiguous();
  return run(heads, heads.size(0), heads.size(1), heads.stride(0), heads.stride(1), weight, rope, eps, pairs);
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) {
  m.impl("rms_norm", TORCH_FN(orrery::ops::cpu::rms_norm));
  m.impl("rms_norm_rope", TORCH_FN(orrery::ops::cpu::rms_norm_rope));
}
