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

class OpenFile {
 public:
  explicit OpenFile(std::string path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Error missing_file if there is none.
  uint64_t size() const {
    struct stat facts {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0)
      refuse(Fault::kMissingFile, "cannot open ", path_, ": ", std::strerror(errno));
    if (!S_ISREG(facts.st_mode))
      refuse(Fault::kMissingFile, path_, ": expected a file, found something else");
    return static_cast<uint64_t>(facts.st_size);
  }

  /// length > 0.
  std::shared_ptr<std::byte> map(uint64_t offset, uint64_t length) const {
    static const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t before = offset % page;
    const auto whole = static_cast<size_t>(before + length);
    // Writable, so that an in-place operation copies a page instead of killing the process; NORESERVE,
    // because the kernel would otherwise refuse private writable mappings larger than the memory.
    void* start = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor_,
                         static_cast<off_t>(offset - before));
    if (start == MAP_FAILED) fail(ErrorKind::kResource, "cannot map ", path_, ": ", std::strerror(errno));
    return {static_cast<std::byte*>(start) + before, [start, whole](std::byte*) { ::munmap(start, whole); }};
  }

 private:
  std::string path_;
  int descriptor_;
};

namespace {

// The system limits the mappings of a process (65,530 by default); smaller parts do not weigh.
constexpr uint64_t kLargePart = uint64_t{1} << 20;

}  // namespace

Bytes Bytes::part(uint64_t offset, uint64_t length) const {
  if (file && length >= kLargePart) return {file->map(offset, length), length};
  return {{data, data.get() + offset}, length};
}

Bytes map_file(const std::string& path) {
  const auto file = std::make_shared<const OpenFile>(path);
  const uint64_t size = file->size();
  if (size == 0) return {};
  return {file->map(0, size), size, file};
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
