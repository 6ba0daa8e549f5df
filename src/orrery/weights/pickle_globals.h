#pragma once
#include <string>
#include <string_view>

#include "orrery/weights/pickle.h"

namespace orrery::weights {

/// What a pickle's global MODULE.NAME stands for: one of the callables, a storage type, or a dtype of torch.
/// Errors: unsupported (another storage type of torch), unsafe_pickle (anything else, named).
pickle::Value find_global(std::string_view module, std::string_view name, const std::string& path);

}  // namespace orrery::weights
