#pragma once
#include <map>
#include <string>

#include "orrery/base/tensor.h"

namespace orrery::weights {

/// Tensors by their name in a checkpoint.
using TensorMap = std::map<std::string, Tensor>;

}  // namespace orrery::weights
