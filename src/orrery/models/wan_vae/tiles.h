#pragma once
#include "orrery/models/wan_vae/wan_vae.h"

namespace orrery::wan_vae {

/// [begin, begin + size) of a picture's rows or columns.
struct Span {
  int64_t begin, size;
};

/// What `tile` gives for each tile of a picture of [rows, columns], blended: [C, F, scale · rows, scale ·
/// columns]. Tiles have the sizes of `tiling` / `unit`, cut off at the picture's end, and `tile` returns
/// [C, F, scale · rows.size, scale · columns.size], or an undefined tensor for every tile, which is then the
/// result. Error of kind request if the tiling does not cover a picture.
Tensor blended(int64_t rows, int64_t columns, const Tiling& tiling, int64_t unit, int64_t scale,
               const std::function<Tensor(Span rows, Span columns)>& tile);

/// Whether a picture of so many rows and columns of `unit` pixels is larger than a tile.
bool needs_tiles(const Options& options, int64_t rows, int64_t columns, int64_t unit);

}  // namespace orrery::wan_vae
