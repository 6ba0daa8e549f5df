#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace orrery::media {

/// The names of the strengths in which hints are computed (spec cosmos-transfer2.5 §3.2, §3.3).
inline constexpr std::array<std::string_view, 5> kPresets = {"very_low", "low", "medium", "high",
                                                             "very_high"};

/// The place of `name` in kPresets; - and _ are the same. Error of kind request that says what was asked for
/// ("edge threshold") and lists the names.
size_t preset_index(std::string_view what, std::string_view name);

}  // namespace orrery::media
