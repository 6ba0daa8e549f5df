#pragma once
#include <cstdlib>
#include <cstring>
#include <string>

#include "orrery/base/error.h"
#include "orrery/weights/mapped_file.h"
#include "orrery/weights/tensor_map.h"

namespace orrery::weights {

/// A copy in a block of exactly this size, so that the sanitizer sees every access outside.
inline Bytes exact_copy(const uint8_t* data, size_t size) {
  std::shared_ptr<std::byte> copy(static_cast<std::byte*>(std::malloc(size)), std::free);
  if (size > 0) std::memcpy(copy.get(), data, size);
  return {copy, size};
}

/// Reads the first and last element of every tensor; the work does not grow with what a file claims.
inline void touch(const TensorMap& tensors) {
  for (const auto& [name, t] : tensors) {
    if (t.numel() == 0) continue;
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    const auto* first = static_cast<const volatile std::byte*>(t.const_data_ptr());
    (void)first[0];
    (void)first[static_cast<size_t>(last + 1) * t.itemsize() - 1];
  }
}

}  // namespace orrery::weights
