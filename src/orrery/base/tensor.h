#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

namespace orrery {

using at::Tensor;
using Shape = std::vector<int64_t>;

/// Shape and type of a tensor that may not exist yet.
struct TensorSpec {
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  bool operator==(const TensorSpec&) const = default;
};

}  // namespace orrery
