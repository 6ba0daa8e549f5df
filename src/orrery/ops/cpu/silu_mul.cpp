#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "orrery/ops/cpu/lanes.h"
#include "orrery/ops/cpu/rows.h"
#include "orrery/ops/silu_mul.h"

namespace orrery::ops::cpu {
namespace {

constexpr int64_t kRun = 1024;  // elements that are given out together

struct Job {
  const void *gate, *up;  // up null: silu alone
  int64_t count;
  void* y;
};

template <class T>
struct SiluMul {
  /// Runs [begin, end) of kRun elements.
  template <int W>
  static ORRERY_INLINE void run(const Job* job, int64_t begin, int64_t end) {
    const T *const gate = static_cast<const T*>(job->gate), *const up = static_cast<const T*>(job->up);
    const int64_t last = std::min(end * kRun, job->count);
    for (int64_t j = begin * kRun; j < last; j += W) {
      const Floats<W> g = load<W>(gate + j, last - j), v = g * sigmoid<W>(g);
      store<W>(static_cast<T*>(job->y) + j, up ? v * load<W>(up + j, last - j) : v, last - j);
    }
  }
};

Tensor run(const Tensor& gate, const Tensor& up) {
  Tensor y = at::empty(gate.sizes(), gate.options());
  const Job job{gate.const_data_ptr(), up.defined() ? up.const_data_ptr() : nullptr, gate.numel(),
                y.data_ptr()};
  const int64_t runs = (job.count + kRun - 1) / kRun;
  if (gate.scalar_type() == at::kFloat)
    for_rows<SiluMul<float>>(runs, kRun, job);
  else
    for_rows<SiluMul<c10::BFloat16>>(runs, kRun, job);
  return y;
}

Tensor silu(const Tensor& x) { return has_kernel(x) ? run(x.contiguous(), Tensor()) : reference::silu(x); }

Tensor silu_mul(const Tensor& gate, const Tensor& up) {
  return has_kernel(gate) ? run(gate.contiguous(), up.contiguous()) : reference::silu_mul(gate, up);
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) {
  m.impl("silu", TORCH_FN(orrery::ops::cpu::silu));
  m.impl("silu_mul", TORCH_FN(orrery::ops::cpu::silu_mul));
}
