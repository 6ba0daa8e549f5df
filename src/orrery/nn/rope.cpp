#include "orrery/nn/rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>

namespace orrery::nn {

Tensor rope_frequencies(int64_t dim, double ratio, bool bf16_exponents) {
  auto exponents = at::arange(0, dim, 2, at::kFloat) / static_cast<double>(dim);
  if (bf16_exponents) exponents = exponents.to(at::kBFloat16).to(at::kFloat);
  const double stretch =
      dim > 2 ? std::pow(ratio, static_cast<double>(dim) / static_cast<double>(dim - 2)) : 1.0;
  return 1.0 / at::pow(at::Scalar(10000.0 * stretch), exponents);
}

Tensor video_rope(const VideoRope& rope, int64_t frames, int64_t rows, int64_t columns) {
  const int64_t dim_space = rope.head_dim / 6 * 2;
  const std::array<int64_t, 3> dims = {rope.head_dim - 2 * dim_space, dim_space, dim_space};
  const std::array<int64_t, 3> counts = {frames, rows, columns};
  std::vector<Tensor> angles;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto positions = at::arange(counts[axis], at::kFloat);
    std::vector<int64_t> view = {1, 1, 1, dims[axis] / 2};
    view[axis] = counts[axis];
    const auto table =
        positions.unsqueeze(1) * rope_frequencies(dims[axis], rope.ratio[axis], rope.bf16_exponents);
    angles.push_back(table.view(view).expand({frames, rows, columns, dims[axis] / 2}));
  }
  const auto all = at::cat(angles, 3).flatten(0, 2);
  return at::cat(std::vector<Tensor>{all.cos(), all.sin()}, 1);
}

}  // namespace orrery::nn
