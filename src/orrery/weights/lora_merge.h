#pragma once
#include <span>

#include "orrery/weights/lora.h"
#include "orrery/weights/tensor_map.h"
#include "orrery/weights/visitors.h"

namespace orrery::weights {

/// LoRA (Hu et al. 2021, arXiv 2106.09685): replaces the matrices M.weight of `base` that the files adapt by
/// W + Σ strength · scale · up · down, computed in float32 and rounded once to `dtype`. Returns the bytes of
/// memory that these take; all other tensors, and the files of all, stay as they are. A strength of 0 is
/// checked like any other and changes nothing. Models do not know of it. The bits do not depend on the number
/// of threads.
///
/// base: a network under the names of its bind; `spelling` gives other names that its modules go by
/// (official_cosmos_name), and a file may use either. dtype: the compute type, so that mapped and widened
/// weights have the same bits.
///
/// Every file is read and checked before the first tensor is replaced. Errors: those of open_lora;
/// unknown_key if a file has modules that the network has not (with their number, the first ten, and the
/// family of networks that they look like); invalid_shape if a module is of another width; duplicate_key if a
/// file adapts a module twice; invalid_tensor for factors with NaN or infinity.
int64_t merge_loras(TensorMap& base, std::span<const LoraChoice> choices, at::ScalarType dtype,
                    const Loader::Spelling& spelling = {});

}  // namespace orrery::weights
