#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "orrery/config/json.h"

namespace orrery::config {

/// The official sample files of Cosmos-Transfer2.5 have an object per control (spec cosmos-transfer2.5 §6.3):
/// {"edge": {"control_path": …, "control_weight": 0.5}}. Replaces them by the fields of ControlFields; an
/// object without a path means that the control is computed. Fields of an object that nobody knows are named
/// in a warning, as the reference ignores them. Numbers where the reference wants text (resolution,
/// sigma_max) become text. Other values stay. Errors of kind request begin with `locate(control)`: fields of
/// another type; unsupported: a control or a mask that a model would have to make from a prompt.
nlohmann::json flatten_controls(nlohmann::json object, const Locate& locate);

}  // namespace orrery::config
