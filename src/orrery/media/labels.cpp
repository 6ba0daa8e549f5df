#include "orrery/media/labels.h"

#include <zip.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/media/npy_header.h"
#include "orrery/media/read.h"

namespace orrery::media {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArray = "arr_0";  // what numpy.savez calls its first array

std::string extension(const std::string& path) {
  std::string end = fs::path(path).extension().string();
  std::ranges::transform(end, end.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end;
}

/// The bytes of an array file, front to back.
class Source {
 public:
  virtual ~Source() = default;
  /// Up to to.size() bytes; 0 at the end only. Throws for what cannot be read.
  virtual size_t read(std::span<char> to) = 0;
};

class FileSource final : public Source {
 public:
  explicit FileSource(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    require(in_.good(), "cannot read ", path, ": ", std::strerror(errno));
  }

  size_t read(std::span<char> to) override {
    in_.read(to.data(), static_cast<std::streamsize>(to.size()));
    require(!in_.bad(), "cannot read ", path_, ": ", std::strerror(errno));
    return static_cast<size_t>(in_.gcount());
  }

 private:
  std::string path_;
  std::ifstream in_;
};

/// The array arr_0 of an archive, plain or deflated. libzip compares the checksum at the end.
class ZipSource final : public Source {
 public:
  explicit ZipSource(const std::string& path) : path_(path) {
    int code = 0;
    archive_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
    if (!archive_) {
      zip_error_t error;
      zip_error_init_with_code(&error, code);
      const std::string why = zip_error_strerror(&error);
      zip_error_fini(&error);
      fail(ErrorKind::kRequest, "cannot read ", path, ": ", why, "; expected an archive of numpy.savez");
    }
    const zip_int64_t index = zip_name_locate(archive_.get(), concat(kArray, ".npy").c_str(), 0);
    require(index >= 0, "cannot read ", path, ": expected an array ", kArray,
            ", as numpy.savez(path, mask) names it; found ", names());
    entry_.reset(zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0));
    require(entry_ != nullptr, "cannot read ", path, ": ", zip_strerror(archive_.get()));
  }

  size_t read(std::span<char> to) override {
    const zip_int64_t count = zip_fread(entry_.get(), to.data(), to.size());
    require(count >= 0, "cannot read ", path_, ": its array ", kArray,
            " is damaged: ", zip_error_strerror(zip_file_get_error(entry_.get())));
    return static_cast<size_t>(count);
  }

 private:
  struct Close {
    void operator()(zip_t* p) const { zip_discard(p); }
    void operator()(zip_file_t* p) const { zip_fclose(p); }
  };

  std::string names() const {
    constexpr zip_int64_t kShown = 10;
    constexpr size_t kLength = 40;
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    std::vector<std::string> found;
    for (zip_int64_t i = 0; i < std::min(count, kShown); ++i) {
      const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), 0);
      std::string& shown = found.emplace_back(std::string(name ? name : "?").substr(0, kLength));
      for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
    }
    if (count > kShown) found.push_back("…");
    return found.empty() ? "nothing" : join(found);
  }

  std::string path_;
  std::unique_ptr<zip_t, Close> archive_;
  std::unique_ptr<zip_file_t, Close> entry_;  // goes before the archive
};

std::unique_ptr<Source> open_source(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require(fs::exists(status), "cannot read ", path, ": ", error ? error.message() : "it does not exist");
  require(fs::is_regular_file(status), "cannot read ", path, ": it is no file");
  if (extension(path) == ".npz") return std::make_unique<ZipSource>(path);
  return std::make_unique<FileSource>(path);
}

/// Fills `to`, or throws.
void fill(Source& source, std::span<char> to, const std::string& path) {
  while (!to.empty()) {
    const size_t count = source.read(to);
    require(count > 0, "cannot read ", path, ": its array is cut short");
    to = to.subspan(count);
  }
}

NpyHeader read_header(Source& source, const std::string& path) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr uint32_t kLongest = 10000;  // numpy's own limit (max_header_size)
  std::array<char, 8> start{};
  fill(source, start, path);
  require(std::string_view(start.data(), kMagic.size()) == kMagic, "cannot read ", path,
          ": it does not begin as an array of numpy.save does");
  const int version = start[6];
  require(version >= 1 && version <= 3, "cannot read ", path, ": its array has format version ", version,
          "; expected 1 to 3");
  std::array<unsigned char, 4> length{};
  fill(source, {reinterpret_cast<char*>(length.data()), version == 1 ? 2u : 4u}, path);
  const uint32_t size = length[0] | length[1] << 8 | length[2] << 16 | uint32_t{length[3]} << 24;
  require(size <= kLongest, "cannot read ", path, ": its array header has ", size,
          " bytes; expected at most ", kLongest);
  std::string text(size, ' ');
  fill(source, text, path);
  return parse_npy_header(text, path);
}

/// An empty mask of the array's size.
Mask sized(const NpyHeader& header, const std::string& path) {
  const auto& shape = header.shape;
  const std::string found = [&] {
    std::string text;
    for (const int64_t n : shape) text += concat(text.empty() ? "" : ", ", n);
    return concat("[", text, "]");
  }();
  require(shape.size() == 2 || shape.size() == 3, "cannot read ", path,
          ": expected an array [frames, height, width] or [height, width], found ", found);
  const int64_t count = shape.size() == 3 ? shape[0] : 1, height = shape[shape.size() - 2],
                width = shape.back();
  require(count > 0 && height > 0 && width > 0, "cannot read ", path, ": its array ", found, " is empty");
  require(height <= kMaxSide && width <= kMaxSide && height * width <= kMaxPixels &&
              count <= kMaxClipBytes / (height * width),
          "cannot read ", path, ": its array ", found, " is too large; expected at most ", kMaxSide,
          " pixels per side, ", kMaxPixels, " in a frame and ", kMaxClipBytes, " in all");
  return {count, height, width, {}};
}

/// Level of each number: 255 for those in the foreground.
class Levels {
 public:
  Levels(const NpyHeader& header, std::span<const int64_t> foreground)
      : bytes_(header.bytes), sign_(header.is_signed), labels_(foreground.begin(), foreground.end()) {
    std::ranges::sort(labels_);
  }

  uint8_t operator()(const char* number) const {
    uint64_t bits = 0;
    std::memcpy(&bits, number, static_cast<size_t>(bytes_));  // little-endian, as the format demanded here
    if (labels_.empty()) return bits ? 255 : 0;
    const int unused = 64 - 8 * bytes_;
    if (!sign_ && bits > uint64_t{INT64_MAX}) return 0;
    const int64_t label = sign_ ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
    return std::ranges::binary_search(labels_, label) ? 255 : 0;
  }

 private:
  int bytes_;
  bool sign_;
  std::vector<int64_t> labels_;
};

}  // namespace

bool is_label_file(const std::string& path) {
  const std::string end = extension(path);
  return end == ".npz" || end == ".npy";
}

Mask read_labels(const std::string& path, std::span<const int64_t> foreground) {
  const auto source = open_source(path);
  const NpyHeader header = read_header(*source, path);
  Mask mask = sized(header, path);
  const Levels level(header, foreground);
  // Memory grows with what is really there: a header may promise anything.
  std::vector<char> row(static_cast<size_t>(mask.width * header.bytes));
  for (int64_t y = 0; y < mask.count * mask.height; ++y) {
    fill(*source, row, path);
    for (size_t at = 0; at < row.size(); at += static_cast<size_t>(header.bytes))
      mask.levels.push_back(level(row.data() + at));
  }
  char more = 0;
  require(source->read({&more, 1}) == 0, "cannot read ", path, ": it holds more than its array");
  return mask;
}

}  // namespace orrery::media
