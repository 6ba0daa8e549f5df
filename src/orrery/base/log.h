#pragma once
#include <string>
#include <string_view>

#include "orrery/base/error.h"

// Messages for people, one line each, on stderr; results go to files and stdout. Any thread.
namespace orrery::log {

enum class Level { kDebug, kInfo, kWarn, kError, kOff };

/// Messages below this level are dropped; kInfo at the start.
void set_level(Level level);

/// Stands before every message, "[rank 3] " for one of many processes; "" at the start. Set before other
/// threads log.
void set_prefix(std::string prefix);
const std::string& prefix();

void write(Level level, std::string_view message);

// The arguments, printed one after the other.
template <class... Args>
void debug(const Args&... args) {
  write(Level::kDebug, concat(args...));
}
template <class... Args>
void info(const Args&... args) {
  write(Level::kInfo, concat(args...));
}
template <class... Args>
void warn(const Args&... args) {
  write(Level::kWarn, concat(args...));
}
template <class... Args>
void error(const Args&... args) {
  write(Level::kError, concat(args...));
}

}  // namespace orrery::log
