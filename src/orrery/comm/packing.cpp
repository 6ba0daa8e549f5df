#include "orrery/comm/packing.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

constexpr int64_t kAlignment = 64;

int64_t bytes_of(const TensorSpec& spec) {
  return c10::multiply_integers(spec.shape) * static_cast<int64_t>(c10::elementSize(spec.dtype));
}

int64_t padded(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

int64_t packed_bytes(const Extents& extents) {
  int64_t total = 0;
  for (const auto& spec : extents) total += padded(bytes_of(spec));
  return total;
}

Tensor pack(const Message& message) {
  const Extents extents = extents_of(message);
  Tensor bytes = at::empty({packed_bytes(extents)}, at::kByte);
  const Message parts = unpack(bytes, extents);
  for (size_t i = 0; i < message.size(); ++i) {
    ensure(message[i].is_cpu(), "a group over processes sends CPU tensors, got one on ", message[i].device());
    parts[i].copy_(message[i]);
  }
  return bytes;
}

Message unpack(const Tensor& bytes, const Extents& extents) {
  Message message;
  int64_t at = 0;
  for (const auto& spec : extents) {
    const int64_t size = bytes_of(spec);
    message.push_back(bytes.narrow(0, at, size).view(spec.dtype).view(spec.shape));
    at += padded(size);
  }
  return message;
}

}  // namespace orrery::comm
