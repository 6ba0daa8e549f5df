#include "orrery/ops/cpu/isa.h"

namespace orrery::ops::cpu {
namespace {

/// Kernels ask at every call; the answer does not change.
const platform::Cpu& this_cpu() {
  static const platform::Cpu cpu = platform::detect_cpu();
  return cpu;
}

}  // namespace

Isa isa() { return this_cpu().isa; }

bool has_fast_bfloat16() { return this_cpu().bfloat16; }

}  // namespace orrery::ops::cpu
