#pragma once
#include "orrery/base/tensor.h"

namespace orrery::nn {

/// [C, F, H, W] → [F · H/p · W/p, C·p·p]: tokens frame by frame, row by row; features ordered (channel, row,
/// column) with the column fastest (spec cosmos-predict2.5 §2.2, step 3; qwen-image §4, "packing").
Tensor patchify(const Tensor& clip, int64_t patch);

/// The way back from [F · H/p · W/p, p·p·C] whose features are ordered (row, column, channel), channel
/// fastest: not the inverse of patchify (spec §2.2, step 9). rows and columns count patches. → [C, F, rows·p,
/// columns·p], contiguous.
Tensor unpatchify(const Tensor& tokens, int64_t patch, int64_t frames, int64_t rows, int64_t columns);

/// The inverse of patchify, where a network's output has the features of its input (spec qwen-image §4).
/// rows and columns count patches. → [C, F, rows·p, columns·p], contiguous.
Tensor unpack(const Tensor& tokens, int64_t patch, int64_t frames, int64_t rows, int64_t columns);

}  // namespace orrery::nn
