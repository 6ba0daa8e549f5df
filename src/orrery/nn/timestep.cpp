#include "orrery/nn/timestep.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

namespace orrery::nn {

Tensor timestep_embedding(const Tensor& times, int64_t width, double scale) {
  const int64_t half = width / 2;
  const auto k = at::arange(half, times.options().dtype(at::kFloat));
  const auto frequencies = (k * (-std::log(10000.0)) / static_cast<double>(half)).exp();
  const auto angles = times.to(at::kFloat).unsqueeze(1) * frequencies * scale;
  return at::cat(std::vector<Tensor>{angles.cos(), angles.sin()}, 1);
}

}  // namespace orrery::nn
