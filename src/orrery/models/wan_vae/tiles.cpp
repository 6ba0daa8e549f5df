// diffusers, models/autoencoders/autoencoder_kl_wan.py, 0.42.1: tiled_encode, tiled_decode, blend_v, blend_h.
#include "orrery/models/wan_vae/tiles.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "orrery/base/error.h"

namespace orrery::wan_vae {
namespace {

/// The tiles along one side.
struct Side {
  int64_t length, size, stride;

  int64_t overlap() const { return size - stride; }
  Span span(int64_t begin) const { return {begin, std::min(size, length - begin)}; }
};

Side side(int64_t length, int64_t size, int64_t stride, int64_t unit) {
  require(stride >= unit && size >= stride && size % unit == 0 && stride % unit == 0,
          "VAE tiling: expected tiles at least as long as their stride, both multiples of ", unit, ", got ",
          size, " and ", stride);
  return {length, size / unit, stride / unit};
}

/// Leads over from the end of `before` to `tile` within its first pixels along `dim`.
void blend(const Tensor& before, const Tensor& tile, int64_t dim) {
  const int64_t extent = std::min(before.size(dim), tile.size(dim));
  Shape shape(4, 1);
  shape[static_cast<size_t>(dim)] = extent;
  const Tensor weight = (at::arange(extent, at::kDouble) / extent).view(shape);
  const Tensor from = before.narrow(dim, before.size(dim) - extent, extent), to = tile.narrow(dim, 0, extent);
  to.copy_(from * (1 - weight).to(at::kFloat) + to * weight.to(at::kFloat));
}

/// The last pixels along `dim`, those that the next tile overlaps.
Tensor end_of(const Tensor& tile, int64_t dim, int64_t overlap) {
  const int64_t extent = std::min(tile.size(dim), overlap);
  return tile.narrow(dim, tile.size(dim) - extent, extent).clone();
}

}  // namespace

Tensor blended(int64_t rows, int64_t columns, const Tiling& tiling, int64_t unit, int64_t scale,
               const std::function<Tensor(Span, Span)>& tile) {
  const Side down = side(rows, tiling.rows, tiling.row_stride, unit),
             across = side(columns, tiling.columns, tiling.column_stride, unit);
  Tensor whole;
  std::vector<Tensor> above(static_cast<size_t>((columns + across.stride - 1) / across.stride));
  for (int64_t top = 0; top < rows; top += down.stride) {
    Tensor left;
    for (int64_t begin = 0; begin < columns; begin += across.stride) {
      const Tensor part = tile(down.span(top), across.span(begin));
      if (!part.defined()) continue;
      if (!whole.defined())
        whole = at::empty({part.size(0), part.size(1), scale * rows, scale * columns}, part.options());
      Tensor& upper = above[static_cast<size_t>(begin / across.stride)];
      if (top > 0) blend(upper, part, 2);
      if (begin > 0) blend(left, part, 3);
      upper = end_of(part, 2, scale * down.overlap());
      left = end_of(part, 3, scale * across.overlap());
      const int64_t height = std::min(part.size(2), scale * down.stride),
                    width = std::min(part.size(3), scale * across.stride);
      whole.narrow(2, scale * top, height)
          .narrow(3, scale * begin, width)
          .copy_(part.narrow(2, 0, height).narrow(3, 0, width));
    }
  }
  return whole;
}

bool needs_tiles(const Options& options, int64_t rows, int64_t columns, int64_t unit) {
  return options.tiling && (rows * unit > options.tiling->rows || columns * unit > options.tiling->columns);
}

}  // namespace orrery::wan_vae
