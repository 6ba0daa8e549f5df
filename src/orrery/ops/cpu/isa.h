#pragma once
// One source, three instruction sets. A kernel is a struct with an always-inline `template <int kWidth>
// static void run(args…)` written with the vectors of lanes.h; run_for_isa inlines it into three functions
// that differ in their target attribute, and calls the one for this CPU. No file is compiled with -mavx…:
// inline functions of such a file would leak into the others and crash older CPUs. Calls that are not inlined
// (lambdas, library functions) do not inherit the target: keep the kernels flat.
#include "orrery/platform/cpu.h"

#define ORRERY_INLINE inline __attribute__((always_inline))

namespace orrery::ops::cpu {

using platform::Isa;

/// This CPU's platform::Cpu::isa.
Isa isa();

/// This CPU's platform::Cpu::bfloat16: bfloat16 matrices are multiplied faster than float32 ones.
bool has_fast_bfloat16();

#ifdef __x86_64__
template <class Kernel, class... Args>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))) void run_avx512(Args... args) {
  Kernel::template run<16>(args...);
}

template <class Kernel, class... Args>
__attribute__((target("avx2,fma,f16c"))) void run_avx2(Args... args) {
  Kernel::template run<8>(args...);
}
#endif

/// Kernel::run<kWidth>(args…) with the CPU's vector width in floats: 16 (AVX-512), 8 (AVX2) or 4 (anything
/// else).
template <class Kernel, class... Args>
void run_for_isa(Args... args) {
#ifdef __x86_64__
  if (isa() == Isa::kAvx512) return run_avx512<Kernel>(args...);
  if (isa() == Isa::kAvx2) return run_avx2<Kernel>(args...);
#endif
  Kernel::template run<4>(args...);
}

}  // namespace orrery::ops::cpu
