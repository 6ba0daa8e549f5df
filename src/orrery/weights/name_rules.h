#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery::weights {

/// A rename of the leading segments of a dotted name. `#` stands for one index; it reappears where the result
/// has a `#`. The segments behind the pattern are kept.
struct NameRule {
  std::string_view from, to;
};

/// The name after the first rule whose pattern equals its leading segments; nothing if none does.
std::optional<std::string> renamed(std::string_view name, std::span<const NameRule> rules);

}  // namespace orrery::weights
