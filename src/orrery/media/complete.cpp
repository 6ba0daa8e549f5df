#include "orrery/media/complete.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "orrery/base/error.h"

namespace orrery::media {
namespace {

/// Bytes [at, at + 16) of the file, zeros behind its end.
std::array<uint8_t, 16> peek(std::ifstream& file, uint64_t at) {
  std::array<uint8_t, 16> bytes{};
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
  return bytes;
}

std::string_view tag(const std::array<uint8_t, 16>& bytes, size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

uint64_t big_endian(const std::array<uint8_t, 16>& bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + i];
  return value;
}

/// End of the last chunk of a file of chunks, each followed by the next; `next` gives the size of the chunk
/// at a position, or 0 where there is none.
template <class Next>
uint64_t end_of_chunks(uint64_t size, Next next) {
  uint64_t at = 0;
  while (at < size) {
    const uint64_t chunk = next(at);
    if (chunk == 0) return size;
    if (chunk > size - at) return chunk > UINT64_MAX - at ? UINT64_MAX : at + chunk;
    at += chunk;
  }
  return size;
}

uint64_t mp4_box(std::ifstream& file, uint64_t at, uint64_t size) {
  static constexpr std::string_view kKnown[] = {"ftyp", "moov", "mdat", "free", "skip", "wide",
                                                "moof", "mfra", "styp", "sidx", "uuid"};
  const auto head = peek(file, at);
  if (std::ranges::find(kKnown, tag(head, 4)) == std::end(kKnown)) return 0;
  const uint64_t length = big_endian(head, 0, 4);
  if (length == 0) return size - at;  // "up to the end of the file"
  return length == 1 ? big_endian(head, 8, 8) : length;
}

uint64_t riff_chunk(std::ifstream& file, uint64_t at, uint64_t size) {
  const auto head = peek(file, at);
  if (tag(head, 0) != "RIFF") return 0;
  const uint64_t length = head[4] | head[5] << 8 | head[6] << 16 | static_cast<uint64_t>(head[7]) << 24;
  if (length == 0) return 0;
  const bool padding =
      length % 2 == 1 && at + 8 + length < size;  // many writers leave the last padding byte out
  return 8 + length + padding;
}

/// An EBML element: identifier and payload size are numbers whose leading zero bits give their own length.
struct Element {
  uint64_t id = 0, header = 0, payload = 0;
  bool known_size = false;
};

Element ebml_element(std::ifstream& file, uint64_t at) {
  const auto head = peek(file, at);
  const auto length = [](uint8_t first) { return static_cast<size_t>(std::countl_zero(first)) + 1; };
  const size_t id = length(head[0]);
  if (id > 4) return {};
  const size_t size = length(head[id]);
  if (size > 8) return {};
  const uint64_t all_ones = (uint64_t{1} << (7 * size)) - 1;
  const uint64_t payload = big_endian(head, id, size) & all_ones;
  return {big_endian(head, 0, id), id + size, payload, payload != all_ones};
}

uint64_t matroska_end(std::ifstream& file, uint64_t size) {
  constexpr uint64_t kSegment = 0x18538067;
  const Element header = ebml_element(file, 0);
  const uint64_t at = header.header + header.payload;
  if (!header.known_size || at >= size) return size;
  const Element segment = ebml_element(file, at);
  // A live recording does not know its size.
  return segment.id == kSegment && segment.known_size ? at + segment.header + segment.payload : size;
}

}  // namespace

void require_complete(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const uint64_t size = std::filesystem::file_size(path);
  const auto head = peek(file, 0);
  uint64_t end = size;
  if (tag(head, 0) == "\x1a\x45\xdf\xa3") {
    end = matroska_end(file, size);
  } else if (tag(head, 0) == "RIFF") {
    end = end_of_chunks(size, [&](uint64_t at) { return riff_chunk(file, at, size); });
  } else {
    end = end_of_chunks(size, [&](uint64_t at) { return mp4_box(file, at, size); });
  }
  require(end <= size, path, " is cut short: its header announces ", end, " bytes, the file has ", size);
}

}  // namespace orrery::media
