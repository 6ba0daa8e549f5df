#pragma once
#include "orrery/models/qwen_vl/image.h"
#include "orrery/models/qwen_vl/vision_weights.h"

namespace orrery::qwen_vl {

/// The (row, column) of each patch in the order of ImagePatches: [S, 2] int64. `patches`: a grid whose sides
/// are multiples of merge_size.
Tensor patch_positions(const VisionConfig& config, Grid patches);

/// How merged patches are ordered so that each window is one run of tokens.
struct Windows {
  Tensor order;                  // [G] int64: the merged patch, counted row by row, that comes i-th
  std::vector<int64_t> lengths;  // tokens (patches) of each window; those at the edges are smaller
};

/// Windows of window_groups() × window_groups() merged patches, row by row (spec §7.2, step 4). `merged`: the
/// grid of merged patches.
Windows windows_of(const VisionConfig& config, Grid merged);

/// The tower over one picture. Attention is confined to windows, each of its exact length, except in
/// full_attention_blocks. Computes in `dtype` (float32 or bfloat16) from weights of any type, which are left
/// where they are. The rows have `dtype`. In bfloat16, norms and rotation are rounded once, where the
/// reference rounds their intermediate steps too. Error of kind internal if the patches are not the tower's.
EncodedImage run_vision(const VisionWeights& weights, const VisionConfig& config, const ImagePatches& patches,
                        at::ScalarType dtype);

}  // namespace orrery::qwen_vl
