#pragma once
#include <c10/core/ScalarType.h>

#include <string>

namespace orrery::platform {

/// What the CPU can do, as far as kernels and the choice of the compute type ask.
struct Cpu {
  std::string
      model;  // "AMD EPYC 9654 96-Core Processor"; the architecture's name where the system gives none
  int cores =
      1;  // logical CPUs that this process may use: its affinity, or less under a control group's quota
  bool avx2 = false, avx512f = false, avx512_bf16 = false, amx_bf16 = false;  // usable: CPU and system agree
};

/// Looks at the machine anew; `root` stands for "/", for tests.
Cpu detect_cpu(const std::string& root = "");

/// bfloat16 where the CPU multiplies it in hardware (AVX512_BF16 or AMX), else float32: without hardware a
/// bfloat16 linear runs at a sixth of float32's speed and a convolution at less than a hundredth.
at::ScalarType preferred_dtype(const Cpu& cpu);

}  // namespace orrery::platform
