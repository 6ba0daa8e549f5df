#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/cpu/lanes.h"
#include "orrery/ops/cpu/rows.h"
#include "orrery/ops/modulate.h"

namespace orrery::ops::cpu {
namespace {

struct Job {
  const void* x;
  int64_t width;
  const float *shift, *scale;  // [R, width]; add_gated_ has its gate in scale
  const int32_t* row;
  float eps;
  void* y;
};

template <class T>
struct LayerNormModulate {
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    const int64_t width = job->width;
    for (int64_t i = begin; i < end; ++i) {
      const T* const x = static_cast<const T*>(job->x) + i * width;
      T* const y = static_cast<T*>(job->y) + i * width;
      const float *const shift = job->shift + job->row[i] * width, *const scale =
                                                                       job->scale + job->row[i] * width;
      const float mean = mean_of<W>(x, width), factor = inverse_deviation<W>(x, mean, width, job->eps);
      for (int64_t j = 0; j < width; j += W) {
        __builtin_prefetch(x + width +
                           j);  // the next row: memory would otherwise rest while this one is worked on
        const Floats<W> normal = (load<W>(x + j, width - j) - mean) * factor;
        store<W>(y + j, normal * (1.0f + load<W>(scale + j, width - j)) + load<W>(shift + j, width - j),
                 width - j);
      }
    }
  }

  template <int W>
  static ORRERY_INLINE float mean_of(const T* x, int64_t width) {
    Floats<W> total = {};
    for (int64_t j = 0; j < width; j += W) total += load<W>(x + j, width - j);
    return sum<W>(total) / static_cast<float>(width);
  }

  /// From the squared distances to the mean, in a second pass over the cached row: E[x²] − E[x]² would
  /// cancel.
  template <int W>
  static ORRERY_INLINE float inverse_deviation(const T* x, float mean, int64_t width, float eps) {
    Floats<W> squares = {};
    int64_t j = 0;
    for (; j + W <= width; j += W) {
      const Floats<W> distance = load<W>(x + j) - mean;
      squares += distance * distance;
    }
    float total = sum<W>(squares);
    for (; j < width; ++j) total += (static_cast<float>(x[j]) - mean) * (static_cast<float>(x[j]) - mean);
    return 1 / std::sqrt(total / static_cast<float>(width) + eps);
  }
};

template <class T>
struct AddGated {
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    const int64_t width = job->width;
    for (int64_t i = begin; i < end; ++i) {
      T* const x = static_cast<T*>(job->y) + i * width;
      const T* const y = static_cast<const T*>(job->x) + i * width;
      const float* const gate = job->scale + job->row[i] * width;
      for (int64_t j = 0; j < width; j += W)
        store<W>(x + j, load<W>(x + j, width - j) + load<W>(gate + j, width - j) * load<W>(y + j, width - j),
                 width - j);
    }
  }
};

/// The rows are pointers into the tables: a wrong one must not read beyond them.
void check_values(const char* op, const Tensor& row, int64_t limit) {
  const int32_t* const values = row.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < row.numel(); ++i)
    ensure(values[i] >= 0 && values[i] < limit, op, ": expected rows in 0 … ", limit - 1, ", got ", values[i],
           " for token ", i);
}

Tensor layer_norm_modulate(const Tensor& x, const Tensor& shift, const Tensor& scale, const Tensor& row,
                           double eps) {
  const Tensor rows = row.contiguous();
  check_values("layer_norm_modulate", rows, shift.size(0));
  if (!has_kernel(x)) return reference::layer_norm_modulate(x, shift, scale, row, eps);
  const Tensor from = x.contiguous(), shifts = shift.contiguous(), scales = scale.contiguous();
  Tensor y = at::empty(x.sizes(), x.options());
  const Job job{from.const_data_ptr(),
                x.size(1),
                shifts.const_data_ptr<float>(),
                scales.const_data_ptr<float>(),
                rows.const_data_ptr<int32_t>(),
                static_cast<float>(eps),
                y.data_ptr()};
  if (x.scalar_type() == at::kFloat)
    for_rows<LayerNormModulate<float>>(x.size(0), x.size(1), job);
  else
    for_rows<LayerNormModulate<c10::BFloat16>>(x.size(0), x.size(1), job);
  return y;
}

void add_gated_(const Tensor& x, const Tensor& gate, const Tensor& y, const Tensor& row) {
  const Tensor rows = row.contiguous(), gates = gate.contiguous();
  check_values("add_gated_", rows, gate.size(0));
  if (!has_kernel(x)) return reference::add_gated_(x, gate, y, row);
  const Job job{y.const_data_ptr(),
                x.size(1),
                nullptr,
                gates.const_data_ptr<float>(),
                rows.const_data_ptr<int32_t>(),
                0,
                x.mutable_data_ptr()};
  if (x.scalar_type() == at::kFloat)
    for_rows<AddGated<float>>(x.size(0), x.size(1), job);
  else
    for_rows<AddGated<c10::BFloat16>>(x.size(0), x.size(1), job);
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) {
  m.impl("layer_norm_modulate", TORCH_FN(orrery::ops::cpu::layer_norm_modulate));
  m.impl("add_gated_", TORCH_FN(orrery::ops::cpu::add_gated_));
}
