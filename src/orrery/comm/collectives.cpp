#include "orrery/comm/collectives.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/WrapDimMinimal.h>

#include <utility>

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

/// Empty where the part is, so that it costs nothing.
Message part_message(const Tensor& part, int64_t dim) {
  return part.size(dim) == 0 ? Message{} : Message{part};
}

std::vector<Extents> part_extents(const Tensor& part, int64_t dim, std::span<const int64_t> sizes) {
  std::vector<Extents> extents;
  for (const int64_t size : sizes) {
    TensorSpec spec{part.sizes().vec(), part.scalar_type()};
    spec.shape[static_cast<size_t>(dim)] = size;
    extents.push_back(size == 0 ? Extents{} : Extents{std::move(spec)});
  }
  return extents;
}

void check_part(const Group& group, const Tensor& part, int64_t dim, std::span<const int64_t> sizes) {
  ensure(std::ssize(sizes) == group.size(), "gather: expected ", group.size(), " sizes, got ", sizes.size());
  const int64_t size = sizes[static_cast<size_t>(group.rank())];
  ensure(part.size(dim) == size, "gather: rank ", group.rank(), " should hold ", size, " in dimension ", dim,
         ", its part is ", part.sizes());
}

/// `part` gives the type, and the result if all parts are empty.
Tensor joined(const std::vector<Message>& messages, const Tensor& part, int64_t dim) {
  std::vector<Tensor> parts;
  for (const auto& message : messages) parts.insert(parts.end(), message.begin(), message.end());
  return parts.empty() ? part : at::cat(parts, dim);
}

}  // namespace

Tensor all_gather(Group& group, const Tensor& part, int64_t dim, std::span<const int64_t> sizes) {
  dim = c10::maybe_wrap_dim(dim, part.dim());
  check_part(group, part, dim, sizes);
  if (group.size() == 1) return part;
  std::vector<Message> to(sizes.size(), part_message(part, dim));
  return joined(group.exchange(std::move(to), part_extents(part, dim, sizes))->wait(), part, dim);
}

Tensor gather_to(Group& group, int root, const Tensor& part, int64_t dim, std::span<const int64_t> sizes) {
  dim = c10::maybe_wrap_dim(dim, part.dim());
  check_part(group, part, dim, sizes);
  if (group.size() == 1) return part;
  const bool here = group.rank() == root;
  std::vector<Message> to(sizes.size());
  to[static_cast<size_t>(root)] = part_message(part, dim);
  const auto from = here ? part_extents(part, dim, sizes) : std::vector<Extents>(sizes.size());
  const auto messages = group.exchange(std::move(to), from)->wait();
  return here ? joined(messages, part, dim) : Tensor();
}

Tensor broadcast(Group& group, int root, const Tensor& value, const TensorSpec& spec) {
  if (group.size() == 1) return value;
  const auto size = static_cast<size_t>(group.size());
  std::vector<Message> to(size);
  if (group.rank() == root) to.assign(size, {value});
  std::vector<Extents> from(size);
  from[static_cast<size_t>(root)] = {spec};
  return group.exchange(std::move(to), from)->wait()[static_cast<size_t>(root)][0];
}

int64_t agree(Group& group, int64_t value) {
  return broadcast(group, 0, at::scalar_tensor(value, at::kLong), {{}, at::kLong}).item<int64_t>();
}

Shift shift(Group& group, Message message, const Extents& from) {
  const int size = group.size(), next = (group.rank() + 1) % size, before = (group.rank() + size - 1) % size;
  std::vector<Message> to(static_cast<size_t>(size));
  to[static_cast<size_t>(next)] = std::move(message);
  std::vector<Extents> extents(to.size());
  extents[static_cast<size_t>(before)] = from;
  return {group.exchange(std::move(to), extents), before};
}

}  // namespace orrery::comm
