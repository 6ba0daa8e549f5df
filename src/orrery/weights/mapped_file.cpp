#include "orrery/weights/mapped_file.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Bytes map_file(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat facts {};
  if (file.number < 0 || ::fstat(file.number, &facts) != 0)
    refuse(Fault::kMissingFile, "cannot open ", path, ": ", std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse(Fault::kMissingFile, path, ": expected a file, found something else");
  const auto size = static_cast<size_t>(facts.st_size);
  if (size == 0) return {};
  // Writable, so that an in-place operation copies a page instead of killing the process; NORESERVE, because
  // the kernel would otherwise refuse private writable mappings larger than the memory.
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.number, 0);
  if (start == MAP_FAILED) fail(ErrorKind::kResource, "cannot map ", path, ": ", std::strerror(errno));
  return {{static_cast<std::byte*>(start), [size](std::byte* p) { ::munmap(p, size); }}, size};
}

Bytes aligned(const Bytes& bytes, size_t alignment) {
  if (bytes.size == 0 || reinterpret_cast<uintptr_t>(bytes.data.get()) % alignment == 0) return bytes;
  // Packed files exist (a header of odd length, an archive packed again by another tool).
  auto copy = std::make_shared<Tensor>(at::empty({static_cast<int64_t>(bytes.size)}, at::kByte));
  std::memcpy(copy->data_ptr(), bytes.data.get(), bytes.size);
  return {{copy, static_cast<std::byte*>(copy->data_ptr())}, bytes.size};
}

Tensor tensor_over(const Bytes& bytes, at::ScalarType dtype, int64_t offset, at::IntArrayRef sizes,
                   at::IntArrayRef strides) {
  if (c10::multiply_integers(sizes) == 0) return at::empty(sizes, dtype);
  std::byte* first = bytes.data.get() + static_cast<size_t>(offset) * c10::elementSize(dtype);
  return at::from_blob(
      first, sizes, strides, [share = bytes.data](void*) {}, at::TensorOptions(dtype));
}

Tensor tensor_over(const Bytes& bytes, at::ScalarType dtype, at::IntArrayRef sizes) {
  Shape strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i]) strides[i] = step;
  return tensor_over(bytes, dtype, 0, sizes, strides);
}

}  // namespace orrery::weights
