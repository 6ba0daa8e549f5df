#pragma once
#include <span>
#include <string>
#include <string_view>

namespace orrery::weights {

/// The family of networks that has modules of such names (dotted or flattened, with or without prefixes), or
/// "" if none is known: for messages about a LoRA that was made for another model.
std::string_view family_of(std::span<const std::string> modules);

}  // namespace orrery::weights
