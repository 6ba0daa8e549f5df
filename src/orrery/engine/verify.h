#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/tensor.h"
#include "orrery/comm/mesh_shape.h"

namespace orrery {

/// How near something computed on many ranks is to the same on one.
struct Agreement {
  std::string stage;
  bool identical = false;
  double max_abs = 0;
  double relative = 0;              // L2 of the difference over L2 of one rank's
  std::optional<double> psnr = {};  // dB, of frames that are not identical
  bool within = true;               // docs/numerics.md, "One rank and many"
};

/// What a run showed of itself, in order.
using Observed = std::vector<std::pair<std::string, Tensor>>;

/// Compares what both runs show, in the order of `one`. Within bounds is: identical at float32 without a
/// ring, else what rounding explains (docs/numerics.md).
std::vector<Agreement> agreements(const Observed& one, const Observed& many, const comm::MeshShape& mesh,
                                  at::ScalarType dtype);

/// A table for people.
std::string to_string(const std::vector<Agreement>& all);

}  // namespace orrery
