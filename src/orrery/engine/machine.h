#pragma once
#include <c10/core/ScalarType.h>

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "orrery/config/plan.h"

namespace orrery {

/// The compute type of a plan on this machine. Error of kind unsupported for bfloat16 on a CPU that has to
/// emulate it.
at::ScalarType compute_type(config::Dtype dtype);

/// "float32" or "bfloat16", as plans spell it.
std::string_view name_of(at::ScalarType compute);

/// {"orrery": …, "torch": …}
nlohmann::ordered_json versions();

}  // namespace orrery
