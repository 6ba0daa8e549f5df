#pragma once
// Archives as torch.save lays them out, written by hand so that each byte can be wrong on purpose.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::testing {

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

/// A zip archive of stored records. Checksums stay 0.
class ZipWriter {
 public:
  /// `alignment` places the record's bytes at a multiple of it plus `misplaced`.
  void add(const std::string& name, std::string_view data, size_t alignment = 64, size_t misplaced = 0) {
    const uint64_t header = bytes_.size();
    const size_t start = header + 30 + name.size() + 4;
    const size_t padding = (alignment - start % alignment) % alignment + misplaced;
    std::string extra =
        little<uint16_t>(0x4246) + little(static_cast<uint16_t>(padding)) + std::string(padding, '\0');
    const auto size = static_cast<uint32_t>(data.size());
    bytes_ += "PK\3\4" + std::string(14, '\0') + little(size) + little(size) +
              little(static_cast<uint16_t>(name.size())) + little(static_cast<uint16_t>(extra.size())) +
              name + extra + std::string(data);
    entries_.push_back({name, header, data.size()});
  }

  /// With the directory. With zip64 every number of the directory stands in its 64-bit field.
  std::string finish(bool zip64 = false) const {
    std::string directory;
    for (const auto& e : entries_) {
      const std::string wide = zip64 ? little<uint16_t>(1) + little<uint16_t>(24) + little(e.size) +
                                           little(e.size) + little(e.header)
                                     : "";
      const auto narrow = [&](uint64_t n) { return little(zip64 ? 0xffffffffu : static_cast<uint32_t>(n)); };
      directory += std::string("PK\1\2") + std::string(16, '\0') + narrow(e.size) + narrow(e.size) +
                   little(static_cast<uint16_t>(e.name.size())) + little(static_cast<uint16_t>(wide.size())) +
                   std::string(10, '\0') + narrow(e.header) + e.name + wide;
    }
    const uint64_t count = entries_.size(), size = directory.size(), at = bytes_.size();
    std::string end;
    if (zip64) {
      end = "PK\6\6" + little<uint64_t>(44) + std::string(12, '\0') + little(count) + little(count) +
            little(size) + little(at);
      end += "PK\6\7" + std::string(4, '\0') + little(at + size) + little<uint32_t>(1);
      end += "PK\5\6" + std::string(4, '\0') + little<uint32_t>(0xffffffff) + little<uint64_t>(~0ull) +
             std::string(2, '\0');
    } else {
      end = "PK\5\6" + std::string(4, '\0') + little(static_cast<uint16_t>(count)) +
            little(static_cast<uint16_t>(count)) + little(static_cast<uint32_t>(size)) +
            little(static_cast<uint32_t>(at)) + std::string(2, '\0');
    }
    return bytes_ + directory + end;
  }

 private:
  struct Entry {
    std::string name;
    uint64_t header = 0, size = 0;
  };
  std::string bytes_;
  std::vector<Entry> entries_;
};

// Pickle opcodes.

inline std::string text(std::string_view s) {
  return "X" + little(static_cast<uint32_t>(s.size())) + std::string(s);
}
inline std::string integer(int64_t n) { return "\x8a\x08" + little(n); }

inline std::string tuple(const std::vector<int64_t>& numbers) {
  std::string out = "(";
  for (int64_t n : numbers) out += integer(n);
  return out + "t";
}

struct TensorRecord {
  std::string key = "0", type = "FloatStorage";
  int64_t count = 0, offset = 0;
  std::vector<int64_t> sizes, strides;
};

/// torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, False, OrderedDict())
inline std::string tensor(const TensorRecord& r) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + r.type + "\n" +
         text(r.key) + text("cpu") + integer(r.count) + "tQ" + integer(r.offset) + tuple(r.sizes) +
         tuple(r.strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

inline std::string pickled(const std::string& value) { return "\x80\x02" + value + "."; }

/// {name: value, …}
inline std::string dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string out = "}(";
  for (const auto& [name, value] : items) out += text(name) + value;
  return out + "u";
}

}  // namespace orrery::testing
