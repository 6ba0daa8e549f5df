#include "orrery/ops/channel_norm.h"

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "orrery/ops/cpu/isa.h"
#include "orrery/ops/cpu/lanes.h"
#include "orrery/ops/cpu/rows.h"

namespace orrery::ops::cpu {
namespace {

/// One row of pixels; `weight` holds √C · weight.
template <class T>
struct NormaliseRow {
  template <int W>
  static ORRERY_INLINE void run(const T* x, const float* weight, T* out, int64_t pixels, int64_t channels,
                                bool with_silu) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel, x += channels, out += channels) {
      Floats<W> squares = {};
      for (int64_t c = 0; c < channels; c += W) {
        const Floats<W> v = load<W>(x + c, channels - c);
        squares += v * v;
      }
      const float inverse = 1.0f / std::max(std::sqrt(sum<W>(squares)), 1e-12f);
      for (int64_t c = 0; c < channels; c += W) {
        Floats<W> v = load<W>(x + c, channels - c) * inverse * load<W>(weight + c, channels - c);
        if (with_silu) v *= sigmoid<W>(v);
        store<W>(out + c, v, channels - c);
      }
    }
  }
};

template <class T>
void normalise(const Tensor& x, const Tensor& scale, bool silu, const Tensor& out) {
  const int64_t rows = x.size(1), pixels = x.size(2), channels = x.size(3);
  const int64_t frame_stride = out.stride(0), row_stride = out.stride(1);
  const T* from = x.const_data_ptr<T>();
  T* to = out.mutable_data_ptr<T>();
  const float* weight = scale.const_data_ptr<float>();
  at::parallel_for(0, x.size(0) * rows, row_grain(pixels * channels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      run_for_isa<NormaliseRow<T>>(from + i * pixels * channels, weight,
                                   to + i / rows * frame_stride + i % rows * row_stride, pixels, channels,
                                   silu);
  });
}

void channel_norm_cpu(const Tensor& x, const Tensor& weight, bool silu, const Tensor& out) {
  const Tensor scale = (weight.to(at::kFloat) * std::sqrt(static_cast<double>(x.size(3)))).contiguous();
  if (x.scalar_type() == at::kFloat)
    normalise<float>(x, scale, silu, out);
  else
    normalise<c10::BFloat16>(x, scale, silu, out);
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) { m.impl("channel_norm", TORCH_FN(orrery::ops::cpu::channel_norm_cpu)); }
