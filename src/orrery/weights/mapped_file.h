#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "orrery/base/tensor.h"

namespace orrery::weights {

/// A file that is open for reading; closed with its last share.
class OpenFile;

/// A range of bytes together with a share in what holds them (a file mapping, a buffer).
struct Bytes {
  std::shared_ptr<std::byte> data;
  uint64_t size = 0;
  std::shared_ptr<const OpenFile> file = {};  // which the bytes map from its start on; null otherwise

  std::string_view text() const { return {reinterpret_cast<const char*>(data.get()), size}; }

  /// The part [offset, offset + length), which must lie inside. Of a mapped file, a large part is mapped by
  /// itself, so that its pages leave memory when it is let go, whatever becomes of the rest; any other part
  /// shares the ownership.
  Bytes part(uint64_t offset, uint64_t length) const;
};

/// The file, mapped copy-on-write: pages are read when touched, and a write into a tensor over it changes
/// neither the file nor other processes. The mapping lives as long as any share in it. A file that another
/// program shortens meanwhile ends the process (SIGBUS), as with every mapping. Errors: missing_file; kind
/// resource if the system refuses the mapping.
Bytes map_file(const std::string& path);

/// `bytes` itself if it starts at a multiple of `alignment`, else a copy that does.
Bytes aligned(const Bytes& bytes, size_t alignment);

/// A tensor over bytes, without a copy; it keeps a share in them. The element `offset` and everything that
/// sizes and strides (counted in elements) reach must lie inside, and the bytes must be aligned for dtype.
Tensor tensor_over(const Bytes& bytes, at::ScalarType dtype, int64_t offset, at::IntArrayRef sizes,
                   at::IntArrayRef strides);

/// The same for a contiguous tensor that starts where the bytes do.
Tensor tensor_over(const Bytes& bytes, at::ScalarType dtype, at::IntArrayRef sizes);

}  // namespace orrery::weights
