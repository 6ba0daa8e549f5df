#include "orrery/engine/machine.h"

#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/platform/cpu.h"

namespace orrery {

at::ScalarType compute_type(config::Dtype dtype) {
  const auto cpu = platform::detect_cpu();
  const auto preferred = platform::preferred_dtype(cpu);
  switch (dtype) {
    case config::Dtype::kAuto:
      return preferred;
    case config::Dtype::kFloat32:
      return at::kFloat;
    case config::Dtype::kBFloat16:
      break;
  }
  if (preferred != at::kBFloat16)
    fail(ErrorKind::kUnsupported, "dtype: ", cpu.model,
         " has no bfloat16 arithmetic (AVX512_BF16 or AMX) and would be many times slower; use float32");
  return at::kBFloat16;
}

std::string_view name_of(at::ScalarType compute) { return compute == at::kBFloat16 ? "bfloat16" : "float32"; }

nlohmann::ordered_json versions() { return {{"orrery", ORRERY_VERSION}, {"torch", TORCH_VERSION}}; }

}  // namespace orrery
