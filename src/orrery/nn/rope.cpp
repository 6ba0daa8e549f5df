#include "orrery/nn/rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>

#include <algorithm>

namespace orrery::nn {
namespace {

/// Positions [S, 3] float32 of a grid's tokens, the first at `first`.
Tensor grid_positions(const std::array<int64_t, 3>& first, const std::array<int64_t, 3>& counts) {
  std::vector<Tensor> axes;
  for (size_t axis = 0; axis < 3; ++axis) {
    Shape view = {1, 1, 1};
    view[axis] = counts[axis];
    axes.push_back(at::arange(first[axis], first[axis] + counts[axis], at::kFloat).view(view).expand(counts));
  }
  return at::stack(axes, -1).flatten(0, 2);
}

/// positions: [S, 3]; frequencies of each axis.
Tensor table(const Tensor& positions, const std::array<Tensor, 3>& frequencies) {
  std::vector<Tensor> angles;
  for (int64_t axis = 0; axis < 3; ++axis)
    angles.push_back(positions.narrow(1, axis, 1) * frequencies[static_cast<size_t>(axis)]);
  const auto all = at::cat(angles, 1);
  return at::cat(std::vector<Tensor>{all.cos(), all.sin()}, 1);
}

std::array<Tensor, 3> frequencies_of(const RopeAxes& axes) {
  const auto of = [](int64_t dim) { return rope_frequencies(dim, 1, false); };
  return {of(axes[0]), of(axes[1]), of(axes[2])};
}

}  // namespace

Tensor rope_frequencies(int64_t dim, double ratio, bool bf16_exponents) {
  auto exponents = at::arange(0, dim, 2, at::kFloat) / static_cast<double>(dim);
  if (bf16_exponents) exponents = exponents.to(at::kBFloat16).to(at::kFloat);
  const double stretch =
      dim > 2 ? std::pow(ratio, static_cast<double>(dim) / static_cast<double>(dim - 2)) : 1.0;
  return 1.0 / at::pow(at::Scalar(10000.0 * stretch), exponents);
}

Tensor video_rope(const VideoRope& rope, int64_t frames, int64_t rows, int64_t columns) {
  const int64_t dim_space = rope.head_dim / 6 * 2;
  const auto frequencies = [&](int64_t dim, size_t axis) {
    return rope_frequencies(dim, rope.ratio[axis], rope.bf16_exponents);
  };
  return table(
      grid_positions({0, 0, 0}, {frames, rows, columns}),
      {frequencies(rope.head_dim - 2 * dim_space, 0), frequencies(dim_space, 1), frequencies(dim_space, 2)});
}

Tensor picture_rope(const RopeAxes& axes, std::span<const PictureSize> pictures) {
  std::vector<Tensor> positions;
  for (const auto& [rows, columns] : pictures)
    positions.push_back(
        grid_positions({std::ssize(positions), rows / 2 - rows, columns / 2 - columns}, {1, rows, columns}));
  return table(at::cat(positions, 0), frequencies_of(axes));
}

Tensor text_rope(const RopeAxes& axes, std::span<const PictureSize> pictures, int64_t length) {
  int64_t start = 0;
  for (const auto& [rows, columns] : pictures) start = std::max({start, rows / 2, columns / 2});
  const auto positions = at::arange(start, start + length, at::kFloat).unsqueeze(1).expand({length, 3});
  return table(positions, frequencies_of(axes));
}

}  // namespace orrery::nn
