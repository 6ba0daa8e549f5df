// huggingface/transformers, models/siglip2/image_processing_siglip2.py
// (get_image_size_for_max_num_patches, convert_image_to_patches); nvidia-cosmos/cosmos-transfer2.5,
// read_and_process_image_context. Spec cosmos-transfer2.5 §2.4.
#include "orrery/models/siglip/image.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "orrery/base/error.h"
#include "orrery/media/resize.h"

namespace orrery::siglip {
namespace {

/// A side in patches when the picture is enlarged by `factor`; no more than one beyond the limit, so that the
/// product of two is far from overflow.
int64_t side_of(const Config& c, int64_t pixels, double factor) {
  const double side = std::ceil(static_cast<double>(pixels) * factor / static_cast<double>(c.patch));
  return static_cast<int64_t>(std::clamp(side, 1.0, static_cast<double>(c.max_patches + 1)));
}

/// [3, 1, 1]. As torchvision does, the factor 1/255 is folded into mean and deviation.
Tensor per_channel(const Config& c, const std::array<double, 3>& values) {
  const auto scale = static_cast<float>(1.0 / c.rescale);
  return at::tensor(values, at::kFloat).view({3, 1, 1}) * scale;
}

}  // namespace

Grid fitted_grid(const Config& c, int64_t height, int64_t width) {
  require(height > 0 && width > 0, "the picture is empty: ", width, " × ", height);
  // The reference's bisection: its limits and its end decide between neighbouring grids.
  constexpr double kPrecision = 1e-5;
  double fits = kPrecision / 10, too_large = 100;
  const auto grid = [&](double factor) {
    return Grid{side_of(c, height, factor), side_of(c, width, factor)};
  };
  while (too_large - fits >= kPrecision) {
    const double factor = (fits + too_large) / 2;
    (grid(factor).count() <= c.max_patches ? fits : too_large) = factor;
  }
  return grid(fits);
}

Tensor grey_levels(const media::Frames& frame) {
  const auto bytes = at::from_blob(const_cast<uint8_t*>(frame.rgb.data()), {frame.height, frame.width, 3},
                                   at::TensorOptions().dtype(at::kByte));
  // The product is exact in float32, so that the last step is the only rounding.
  return (bytes.permute({2, 0, 1}).to(at::kFloat) * (255.0 / 256)).to(at::kBFloat16);
}

ImagePatches patches_of(const Config& c, const media::Frames& picture, int64_t height, int64_t width) {
  require(picture.count == 1, "a style picture has one frame, not ", picture.count);
  const Grid grid = fitted_grid(c, height, width);
  require(grid.count() <= c.max_patches, "a picture of ", width, " × ", height, " pixels has no grid of ",
          c.max_patches, " patches");
  const auto levels =
      grey_levels(media::stretch_pil(picture, height, width, media::Filter::kLanczos)).to(at::kFloat);
  const auto fitted =
      at::_upsample_bilinear2d_aa(levels.unsqueeze(0), {grid.rows * c.patch, grid.columns * c.patch},
                                  /*align_corners=*/false)[0]
          .to(at::kBFloat16)
          .to(at::kFloat);
  const auto pixels = (fitted - per_channel(c, c.mean)) / per_channel(c, c.deviation);
  // [3, rows, p, columns, p] → [rows, columns, p, p, 3]
  const auto patches = pixels.unflatten(2, {grid.columns, c.patch}).unflatten(1, {grid.rows, c.patch});
  const auto rows = patches.permute({1, 3, 2, 4, 0}).flatten(2).flatten(0, 1);
  return {at::cat({rows, at::zeros({c.max_patches - grid.count(), c.patch_features()})}), grid};
}

}  // namespace orrery::siglip
