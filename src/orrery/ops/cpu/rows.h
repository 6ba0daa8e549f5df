#pragma once
#include <ATen/Parallel.h>

#include "orrery/base/tensor.h"
#include "orrery/ops/cpu/isa.h"

namespace orrery::ops::cpu {

/// The least work for which a second thread is worth waking: some 100 µs of multiplications. Smaller products
/// run on the caller's thread, which also keeps a busy machine from waiting for threads that do not get to
/// run.
constexpr int64_t kFlopsPerThread = int64_t{16} << 20;

/// How many units of so many multiplications and additions make a piece for one thread.
inline int64_t grain(int64_t flops_per_unit) {
  return std::max<int64_t>(1, kFlopsPerThread / std::max<int64_t>(1, flops_per_unit));
}

/// The same for work that passes over memory once: rows of so many elements.
inline int64_t row_grain(int64_t width) {
  constexpr int64_t kElements = 16384;
  return std::max<int64_t>(1, kElements / std::max<int64_t>(1, width));
}

/// Runs Kernel over [0, rows) in parallel, in pieces worth a thread's start: `Kernel::run<kWidth>(&job,
/// begin, end)`.
template <class Kernel, class Job>
void for_rows(int64_t rows, int64_t width, const Job& job) {
  at::parallel_for(0, rows, row_grain(width),
                   [&](int64_t begin, int64_t end) { run_for_isa<Kernel>(&job, begin, end); });
}

/// Whether a CPU kernel of ours exists for the dtype; the others take the reference.
inline bool has_kernel(const Tensor& t) {
  return t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16;
}

}  // namespace orrery::ops::cpu
