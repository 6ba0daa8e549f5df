// PKWARE APPNOTE.TXT 6.3.10: §4.3.7 local header, §4.3.12 central directory, §4.3.14-16 end records, §4.5.3
// zip64 field.
#include "orrery/weights/zip.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr uint64_t kLongestComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;  // "see the zip64 field"
constexpr uint16_t kIn64Short = 0xffff;

struct Entry {
  std::string_view name;
  uint64_t header = 0;  // of the local header
  ZipRecord record;
};

class ZipReader {
 public:
  ZipReader(std::string_view archive, const std::string& path) : archive_(archive), path_(path) {}

  std::map<std::string, ZipRecord> read() {
    find_directory();
    std::vector<Entry> entries;
    uint64_t at = directory_;
    while (at < directory_end_) entries.push_back(read_entry(at));
    if (at != directory_end_ || entries.size() != count_)
      corrupt("expected ", count_, " records in the directory, found ", entries.size());
    std::ranges::sort(entries, {}, &Entry::header);
    std::map<std::string, ZipRecord> records;
    uint64_t free = 0;  // end of the record before
    for (const auto& e : entries) {
      if (e.header < free) corrupt("record ", shown(e.name), " overlaps another");
      free = e.record.offset + e.record.size;
      if (!records.emplace(e.name, e.record).second) corrupt("record ", shown(e.name), " occurs twice");
    }
    return records;
  }

 private:
  template <class... Args>
  [[noreturn]] void corrupt(const Args&... args) const {
    refuse(Fault::kCorruptArchive, path_, ": ", args...);
  }

  std::string_view part(uint64_t offset, uint64_t size, std::string_view what) const {
    if (offset > archive_.size() || size > archive_.size() - offset)
      corrupt(what, " at byte ", offset, " lies outside the file of ", archive_.size(), " bytes");
    return archive_.substr(offset, size);
  }

  template <class T>
  static T number(std::string_view bytes, size_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }

  uint64_t find_end() const {
    if (archive_.size() < kEndSize) corrupt("not a zip archive (", archive_.size(), " bytes)");
    const uint64_t last = archive_.size() - kEndSize;
    for (uint64_t at = last, tried = 0; tried <= kLongestComment; --at, ++tried) {
      const auto end = archive_.substr(at, kEndSize);
      if (number<uint32_t>(end, 0) == kEnd && number<uint16_t>(end, 20) == last - at) return at;
      if (at == 0) break;
    }
    corrupt("not a complete zip archive: there is no directory at its end");
  }

  void find_directory() {
    const uint64_t end_at = find_end();
    const auto end = archive_.substr(end_at, kEndSize);
    count_ = number<uint16_t>(end, 10);
    uint64_t size = number<uint32_t>(end, 12);
    directory_ = number<uint32_t>(end, 16);
    uint64_t limit = end_at;
    if (count_ == kIn64Short || size == kIn64 || directory_ == kIn64) {
      if (end_at < kLocatorSize) corrupt("there is no zip64 locator");
      const auto locator = archive_.substr(end_at - kLocatorSize, kLocatorSize);
      if (number<uint32_t>(locator, 0) != kLocator64) corrupt("there is no zip64 locator");
      limit = number<uint64_t>(locator, 8);
      const auto end64 = part(limit, kEnd64Size, "zip64 end record");
      if (number<uint32_t>(end64, 0) != kEnd64) corrupt("there is no zip64 end record at byte ", limit);
      count_ = number<uint64_t>(end64, 32);
      size = number<uint64_t>(end64, 40);
      directory_ = number<uint64_t>(end64, 48);
    }
    if (directory_ > limit || size > limit - directory_)
      corrupt("directory of ", size, " bytes at byte ", directory_, " lies outside the file");
    directory_end_ = directory_ + size;
  }

  /// Reads the entry at `at` and moves `at` to the next one.
  Entry read_entry(uint64_t& at) const {
    const auto head = part(at, kCentralSize, "directory entry");
    if (number<uint32_t>(head, 0) != kCentral) corrupt("there is no directory entry at byte ", at);
    const uint64_t name_size = number<uint16_t>(head, 28), extra_size = number<uint16_t>(head, 30);
    Entry entry{part(at + kCentralSize, name_size, "record name"), 0, {}};
    const auto extra = part(at + kCentralSize + name_size, extra_size, "extra field");
    at += kCentralSize + name_size + extra_size + number<uint16_t>(head, 32);

    if (number<uint16_t>(head, 8) & 1)
      refuse(Fault::kUnsupported, path_, ": record ", shown(entry.name), " is encrypted");
    if (number<uint16_t>(head, 10) != 0)
      refuse(Fault::kUnsupported, path_, ": record ", shown(entry.name),
             " is compressed, and torch.save stores records plain; load the file in Python and torch.save it "
             "again");
    std::string_view wide = field64(extra);
    const auto take = [&](size_t offset) -> uint64_t {
      const auto narrow = number<uint32_t>(head, offset);
      if (narrow != kIn64) return narrow;
      if (wide.size() < 8) corrupt("record ", shown(entry.name), " lacks its zip64 sizes");
      const auto value = number<uint64_t>(wide, 0);
      wide.remove_prefix(8);
      return value;
    };
    entry.record.size = take(24);
    if (const uint64_t packed = take(20); packed != entry.record.size)
      corrupt("record ", shown(entry.name), " is stored, but ", entry.record.size, " bytes take ", packed);
    entry.header = take(42);
    locate(entry);
    return entry;
  }

  static std::string_view field64(std::string_view extra) {
    while (extra.size() >= 4) {
      const uint64_t size = std::min<uint64_t>(number<uint16_t>(extra, 2), extra.size() - 4);
      if (number<uint16_t>(extra, 0) == 1) return extra.substr(4, size);
      extra.remove_prefix(4 + size);
    }
    return {};
  }

  void locate(Entry& entry) const {
    const auto head = part(entry.header, kLocalSize, concat("record ", shown(entry.name)));
    if (number<uint32_t>(head, 0) != kLocal)
      corrupt("there is no record ", shown(entry.name), " at byte ", entry.header);
    const uint64_t name_size = number<uint16_t>(head, 26), extra_size = number<uint16_t>(head, 28);
    if (part(entry.header + kLocalSize, name_size, "record name") != entry.name)
      corrupt("the directory names record ", shown(entry.name), ", the record itself says otherwise");
    entry.record.offset = entry.header + kLocalSize + name_size + extra_size;
    part(entry.record.offset, entry.record.size, concat("record ", shown(entry.name)));
    if (entry.record.offset + entry.record.size > directory_)
      corrupt("record ", shown(entry.name), " overlaps the directory");
  }

  std::string_view archive_;
  const std::string& path_;
  uint64_t directory_ = 0, directory_end_ = 0, count_ = 0;
};

}  // namespace

std::map<std::string, ZipRecord> read_zip(std::string_view archive, const std::string& path) {
  return ZipReader(archive, path).read();
}

}  // namespace orrery::weights
