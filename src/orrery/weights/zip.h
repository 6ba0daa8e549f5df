#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace orrery::weights {

/// Where a record's bytes lie in its archive.
struct ZipRecord {
  uint64_t offset = 0, size = 0;
};

/// The records of a zip archive by name; `archive` is the whole file's bytes, `path` is for messages. Reads
/// what torch.save writes: stored records, zip64. Every record lies inside the file and none overlaps
/// another, so that records together are never larger than the file. Checksums are not compared: that would
/// read gigabytes. Errors: corrupt_archive; unsupported (compressed or encrypted records).
std::map<std::string, ZipRecord> read_zip(std::string_view archive, const std::string& path);

}  // namespace orrery::weights
