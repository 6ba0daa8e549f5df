#include "orrery/ops/cpu/isa.h"

#include <ATen/Version.h>

#include <string>

namespace orrery::ops::cpu {

Isa isa() {
  static const Isa found = [] {
    const std::string name = at::get_cpu_capability();
    return name == "AVX512" ? Isa::kAvx512 : name == "AVX2" ? Isa::kAvx2 : Isa::kPlain;
  }();
  return found;
}

bool has_fast_bfloat16() {
#ifdef __x86_64__
  return isa() == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace orrery::ops::cpu
