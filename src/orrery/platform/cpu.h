#pragma once
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

namespace orrery::platform {

/// The widest vectors that libtorch uses here: the CPU's best, or less where ATEN_CPU_CAPABILITY says so.
enum class Isa { kPlain, kAvx2, kAvx512 };

/// What the CPU can do, as far as kernels and the choice of the compute type ask.
struct Cpu {
  std::string
      model;  // "AMD EPYC 9654 96-Core Processor"; the architecture's name where the system gives none
  int cores =
      1;  // logical CPUs that this process may use: its affinity, or less under a control group's quota
  Isa isa = Isa::kPlain;
  bool bfloat16 = false;  // multiplies bfloat16 matrices in hardware (AVX512_BF16, AMX), and libtorch uses it
};

/// Looks at the machine anew; `root` stands for "/", for tests.
Cpu detect_cpu(const std::string& root = "");

/// A number that two processes share if they may run on exactly the same cores of the same machine: they are
/// to divide them. `root` stands for "/", for tests.
uint64_t core_set(const std::string& root = "");

/// bfloat16 where the CPU multiplies it in hardware, else float32: without hardware a bfloat16 linear runs at
/// a sixth of float32's speed and a convolution at less than a hundredth.
at::ScalarType preferred_dtype(const Cpu& cpu);

}  // namespace orrery::platform
