#pragma once
// A style picture on its way into the vision tower (spec cosmos-transfer2.5 §2.4).
#include "orrery/base/tensor.h"
#include "orrery/media/frames.h"
#include "orrery/models/siglip/config.h"

namespace orrery::siglip {

struct Grid {
  int64_t rows = 0, columns = 0;

  int64_t count() const { return rows * columns; }
  bool operator==(const Grid&) const = default;
};

/// What the vision tower is given of one picture.
struct ImagePatches {
  Tensor values;  // [max_patches, p² · 3] float32: the grid row by row, then zeros
  Grid grid;      // of patches: the first grid.count() rows are valid
};

/// NaFlex (Tschannen et al. 2025, arXiv 2502.14786): the largest grid of at most max_patches whose
/// sides are height and width times one factor, rounded up to whole patches. Error of kind request for an
/// empty picture.
Grid fitted_grid(const Config& config, int64_t height, int64_t width);

/// The grey levels that the official pipeline hands to its processor: [3, H, W] bfloat16. It scales a frame
/// to u/128 − 1 and back by (1 + x)/2 · 255 in that type, so level u becomes u · 255/256 rounded to 8
/// significant bits, and white 254.
Tensor grey_levels(const media::Frames& frame);

/// A picture of any size, stretched (Pillow's Lanczos) to the height × width at which the model works on the
/// video, as patches: its grey levels, stretched to the fitted grid in float32 and rounded to bfloat16 again,
/// less the mean, over the deviation. Nothing is resized that has the size already. Features are ordered
/// (row, column, channel). The picture is RGB, as media::read_frames gives it: grey, palette and CMYK ones
/// are converted there. Alpha it drops; whoever wants it on white, as the official pipeline has it, blends
/// before. Errors of kind request: no pixels, more than one frame, or an empty height × width.
ImagePatches patches_of(const Config& config, const media::Frames& picture, int64_t height, int64_t width);

}  // namespace orrery::siglip
