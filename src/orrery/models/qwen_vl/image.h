#pragma once
// Pictures on their way into the text decoder (spec qwen2.5-vl-text §7.4, §7.5).
#include <array>
#include <string>

#include "orrery/base/tensor.h"
#include "orrery/media/frames.h"

namespace orrery::qwen_vl {

struct Grid {
  int64_t rows = 0, columns = 0;

  int64_t count() const { return rows * columns; }
  bool operator==(const Grid&) const = default;
};

/// Calls fn(row, column) for every patch in the order of ImagePatches: the merge × merge patches of a group
/// one after the other, groups row by row. `merge` divides the grid.
template <class Fn>
void for_each_patch(Grid patches, int64_t merge, const Fn& fn) {
  for (int64_t top = 0; top < patches.rows; top += merge)
    for (int64_t left = 0; left < patches.columns; left += merge)
      for (int64_t row = top; row < top + merge; ++row)
        for (int64_t column = left; column < left + merge; ++column) fn(row, column);
}

/// What the vision tower is given of one picture.
struct ImagePatches {
  Tensor values;  // [rows · columns, 3 · T · p²] float32; merge × merge neighbours are consecutive rows
  Grid grid;      // of patches
};

/// What the text decoder is given of it: one row for each merge × merge patches.
struct EncodedImage {
  Tensor rows;  // [rows · columns, E], row by row
  Grid grid;    // of these rows
};

/// How pictures are brought to patches. Initial values are transformers' defaults.
struct ImageConfig {
  int64_t min_pixels = 56 * 56, max_pixels = 28 * 28 * 1280;
  int64_t patch_size = 14, temporal_patch_size = 2, merge_size = 2;
  double rescale = 1.0 / 255;
  std::array<double, 3> mean = {0.48145466, 0.4578275, 0.40821073},
                        deviation = {0.26862954, 0.26130258, 0.27577711};
};

/// preprocessor_config.json of a processor's folder. Error of kind checkpoint, naming the field, for
/// impossible values; unsupported for another filter than bicubic and for a step left out.
ImageConfig read_image_config(const std::string& path);

struct Size {
  int64_t height = 0, width = 0;
  bool operator==(const Size&) const = default;
};

/// "smart_resize": the size near height × width whose sides are whole multiples of patch · merge pixels and
/// whose area is between min_pixels and max_pixels. Error of kind request for an empty picture, or one of
/// which a side is more than 200 times the other.
Size fitted_size(const ImageConfig& config, int64_t height, int64_t width);

/// Resizes one RGB picture to its fitted size as transformers 5 does (media::stretch_torch, bicubic), takes
/// mean and deviation off and cuts it into patches, to the bit of the reference. A picture stands for all T
/// frames of its patches. Features are ordered (channel, frame, row, column). Errors of fitted_size; request
/// if there is more than one frame.
ImagePatches patches_of(const ImageConfig& config, const media::Frames& image);

}  // namespace orrery::qwen_vl
