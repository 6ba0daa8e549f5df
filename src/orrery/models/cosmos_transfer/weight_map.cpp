// Source: nvidia-cosmos/cosmos-transfer2.5 @ 2ff49d0,
// cosmos_transfer2/_src/transfer2/models/vid2vid_model_control_vace_rectified_flow.py
// (get_data_and_condition, resize_control_weight). Its trilinear interpolation without aligned corners, by
// even whole factors, is the mean of the two samples in the middle along every axis.
#include "orrery/models/cosmos_transfer/weight_map.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "orrery/base/error.h"

namespace orrery::cosmos_transfer {
namespace {

constexpr int64_t kGroup = 4;       // frames of a latent frame but the first
constexpr int64_t kTokenSide = 16;  // pixels: 8 of the VAE times 2 of a patch
constexpr double kWhite = 255;

/// Groups of `size` along `dim`, of which the two members in the middle are kept: [.., n, ..] → [.., n/size,
/// 2, ..].
Tensor centres(const Tensor& x, int64_t dim, int64_t size) {
  return x.unflatten(dim, {-1, size}).narrow(dim + 1, size / 2 - 1, 2);
}

bool excludes_nothing(const media::Mask& mask) {
  return std::ranges::all_of(mask.levels, [](uint8_t level) { return level == 255; });
}

}  // namespace

Tensor reduce_mask(const media::Mask& mask, int64_t side) {
  require(mask.count >= 1 && mask.count % kGroup == 1 && mask.height >= 1 && mask.width >= 1 &&
              mask.height % side == 0 && mask.width % side == 0,
          "expected a mask of 4k + 1 frames with sides that are multiples of ", side, ", got ", mask.count,
          " frames of ", mask.width, " × ", mask.height);
  const auto levels = at::from_blob(const_cast<uint8_t*>(mask.levels.data()),
                                    {mask.count, mask.height, mask.width}, at::kByte);
  const auto cells = centres(centres(levels, 2, side), 1, side);  // [F, R, 2, C, 2]
  auto reduced = cells.narrow(0, 0, 1).to(at::kFloat).mean({2, 4});
  if (mask.count > 1) {
    const auto groups = centres(cells.narrow(0, 1, mask.count - 1), 0, kGroup);  // [T − 1, 2, R, 2, C, 2]
    reduced = at::cat({reduced, groups.to(at::kFloat).mean({1, 3, 5})});
  }
  return reduced / kWhite;
}

std::vector<Tensor> weight_maps(std::span<const ControlStrength> controls, at::ScalarType dtype) {
  const media::Mask* first = nullptr;
  std::vector<const media::Mask*> masks;  // null where a control acts everywhere
  for (const ControlStrength& control : controls) {
    const bool everywhere = control.mask == nullptr || excludes_nothing(*control.mask);
    const media::Mask* mask = masks.emplace_back(everywhere ? nullptr : control.mask);
    if (first == nullptr) first = mask;
    require(mask == nullptr ||
                (mask->count == first->count && mask->height == first->height && mask->width == first->width),
            "expected masks of one size, got ", first->count, " frames of ", first->width, " × ",
            first->height, " and ", mask->count, " frames of ", mask->width, " × ", mask->height);
  }
  if (first == nullptr) return {};

  std::vector<Tensor> maps;
  Tensor total;
  for (size_t i = 0; i < controls.size(); ++i) {
    const auto where = masks[i] ? reduce_mask(*masks[i], kTokenSide)
                                : at::ones(reduce_mask(*first, kTokenSide).sizes(), at::kFloat);
    const auto weight = at::tensor(controls[i].weight, at::kFloat).to(dtype).to(at::kFloat);
    const Tensor& map = maps.emplace_back((where * weight).to(dtype));
    total = total.defined() ? total + map.to(at::kFloat) : map.to(at::kFloat);
  }
  const auto cap = at::reciprocal(at::clamp_min(total.to(dtype), 1));
  for (Tensor& map : maps) map = map * cap;
  return maps;
}

}  // namespace orrery::cosmos_transfer
