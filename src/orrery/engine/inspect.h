#pragma once
#include <string>

#include "orrery/config/settings.h"

namespace orrery {

/// What the checkpoint is: family, layout, sizes, parameters, the dtypes in its files, the memory that each
/// way of holding the weights takes, its defaults. As text for people, or as one JSON object. Reads
/// configurations and headers only. Errors: checkpoint (incomplete or malformed).
std::string inspect(const config::Settings& settings, bool json);

}  // namespace orrery
