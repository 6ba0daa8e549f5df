#include "orrery/weights/name_rules.h"

#include <algorithm>

namespace orrery::weights {
namespace {

std::string_view take_segment(std::string_view& rest) {
  const size_t dot = rest.find('.');
  const auto segment = rest.substr(0, dot);
  rest.remove_prefix(dot == rest.npos ? rest.size() : dot + 1);
  return segment;
}

bool is_index(std::string_view segment) {
  return !segment.empty() && std::ranges::all_of(segment, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::string> apply(std::string_view name, const NameRule& rule) {
  std::string_view pattern = rule.from, index;
  while (!pattern.empty()) {
    const auto expected = take_segment(pattern), found = take_segment(name);
    if (expected == "#" && is_index(found))
      index = found;
    else if (expected != found)
      return {};
  }
  std::string out(rule.to);
  if (const size_t at = out.find('#'); at != out.npos) out.replace(at, 1, index);
  return name.empty() ? out : out + "." + std::string(name);
}

}  // namespace

std::optional<std::string> renamed(std::string_view name, std::span<const NameRule> rules) {
  for (const auto& rule : rules)
    if (auto out = apply(name, rule)) return out;
  return {};
}

}  // namespace orrery::weights
