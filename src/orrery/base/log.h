#pragma once
#include <spdlog/spdlog.h>

namespace orrery::log {

// Human-readable messages go to stderr; results go to files and stdout. `app/` chooses level and pattern.
using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace orrery::log
