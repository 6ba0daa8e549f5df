#pragma once
#include <span>

#include "orrery/base/tensor.h"
#include "orrery/media/mask.h"

namespace orrery::cosmos_transfer {

/// A mask on a coarser grid (spec cosmos-transfer2.5 §2.8, §4.6): [4(T−1)+1, side·R, side·C] → [T, R, C]
/// float32 in 0 … 1. The first frame is a group of its own, four frames each are the others; a cell is the
/// mean of the two pixels at its centre along every axis (of four frames, those in the middle). side: 16 for
/// tokens, 8 for latents. Error of kind request for a mask of another size.
Tensor reduce_mask(const media::Mask& mask, int64_t side);

/// How strongly one control acts on a clip, and where.
struct ControlStrength {
  double weight = 1;                  // 0 for a control that is absent
  const media::Mask* mask = nullptr;  // of the clip's frames and pixels, binary; null: everywhere
};

/// What the hints of each control are multiplied with, in the order of `controls`: [T, R, C] of `dtype` on
/// the token grid, capped so that they sum to at most 1 everywhere. Rounds where the reference does, which
/// computes in bfloat16. Empty if no mask excludes anything: the plain weights apply then, as they are, also
/// where they sum to more. Error of kind request for masks of different sizes, and as reduce_mask.
std::vector<Tensor> weight_maps(std::span<const ControlStrength> controls, at::ScalarType dtype);

}  // namespace orrery::cosmos_transfer
