#pragma once
// Pictures of the goldens, which are tensors.
#include <ATen/ops/from_blob.h>

#include <map>
#include <string>

#include "orrery/base/tensor.h"
#include "orrery/media/frames.h"

namespace orrery::testing {

using Tensors = std::map<std::string, Tensor>;

/// [H, W, 3] of bytes as a picture, and back.
inline media::Frames picture(const Tensor& t) {
  const Tensor flat = t.contiguous();
  const auto* data = flat.const_data_ptr<uint8_t>();
  return {1, t.size(0), t.size(1), {data, data + flat.numel()}};
}

inline Tensor tensor(const media::Frames& frames) {
  return at::from_blob(const_cast<uint8_t*>(frames.rgb.data()), {frames.height, frames.width, 3}, at::kByte)
      .clone();
}

}  // namespace orrery::testing
