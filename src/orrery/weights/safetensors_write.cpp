#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "orrery/weights/refuse.h"
#include "orrery/weights/safetensors.h"
#include "orrery/weights/safetensors_header.h"

namespace orrery::weights {
namespace {

/// PATH.partial until commit(); removed if that is not reached.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path)
      : path_(path),
        partial_(path + ".partial"),
        file_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    check(file_ >= 0);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (file_ >= 0) ::close(file_), ::unlink(partial_.c_str());
  }

  void write(const void* data, size_t size) {
    for (const char* next = static_cast<const char*>(data); size > 0;) {
      const ssize_t written = ::write(file_, next, size);
      if (written < 0 && errno == EINTR) continue;
      check(written > 0);
      next += written, size -= static_cast<size_t>(written);
    }
  }

  void commit() {
    check(::fsync(file_) == 0);
    check(::rename(partial_.c_str(), path_.c_str()) == 0);
    ::close(file_);
    file_ = -1;
  }

 private:
  void check(bool good) const {
    if (!good) fail(ErrorKind::kResource, "cannot write ", path_, ": ", std::strerror(errno));
  }

  std::string path_, partial_;
  int file_;
};

}  // namespace

void write_safetensors(const std::string& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // The widest elements first: then every tensor is aligned, because the data start at a multiple of 8.
  std::vector<TensorMap::const_iterator> order;
  for (auto it = tensors.begin(); it != tensors.end(); ++it) order.push_back(it);
  std::ranges::stable_sort(order, std::greater{}, [](const auto& it) { return it->second.itemsize(); });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t end = 0;
  for (const auto& it : order) {
    const auto& [name, tensor] = *it;
    const size_t begin = end;
    end += tensor.nbytes();
    header[name] = {{"dtype", safetensors_word(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();

  PartialFile file(path);
  file.write(&length, sizeof(length));
  file.write(text.data(), text.size());
  for (const auto& it : order) {
    const Tensor plain = it->second.cpu().contiguous();
    file.write(plain.const_data_ptr(), plain.nbytes());
  }
  file.commit();
}

}  // namespace orrery::weights
