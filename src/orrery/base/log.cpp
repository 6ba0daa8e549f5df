#include "orrery/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace orrery::log {
namespace {

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

std::string& prefix_text() {
  static std::string text;
  return text;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made =
        std::make_shared<spdlog::logger>("orrery", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l%$: %v");
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) { logger().set_level(level_of(level)); }

void set_prefix(std::string prefix) {
  prefix_text() = std::move(prefix);
  logger().set_pattern(prefix_text() + "%^%l%$: %v");
}

const std::string& prefix() { return prefix_text(); }

void write(Level level, std::string_view message) { logger().log(level_of(level), message); }

}  // namespace orrery::log
