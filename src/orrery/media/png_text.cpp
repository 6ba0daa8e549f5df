#include "orrery/media/png_text.h"

#include <fstream>
#include <string_view>

extern "C" {
#include <libavutil/crc.h>
}

#include "orrery/base/error.h"
#include "orrery/media/read.h"

namespace orrery::media {
namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n", kType = "iTXt";
constexpr uint32_t kLongest = 1 << 20;  // of one text that is read; longer ones are passed over
// Compression flag and method, then an empty language and an empty translated keyword: what follows the key.
constexpr std::string_view kPlain("\0\0\0\0\0", 5);

void append_big_endian(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

uint32_t checksum(std::string_view bytes) {
  return ~av_crc(av_crc_get_table(AV_CRC_32_IEEE_LE), ~0u, reinterpret_cast<const uint8_t*>(bytes.data()),
                 bytes.size());
}

/// The next `count` bytes, or fewer at the end.
std::string take(std::istream& in, size_t count) {
  std::string bytes(count, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return bytes;
}

}  // namespace

std::string text_chunk(const std::string& key, const std::string& value) {
  require(!key.empty() && key.size() <= 79, "PNG text: expected a key of 1 to 79 bytes, got ", key.size());
  const std::string body = concat(kType, key, kPlain, value);
  std::string chunk;
  append_big_endian(chunk, static_cast<uint32_t>(body.size() - kType.size()));
  chunk += body;
  append_big_endian(chunk, checksum(body));
  return chunk;
}

std::map<std::string, std::string> read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "cannot read ", path);
  std::map<std::string, std::string> text;
  if (take(in, kSignature.size()) != kSignature) return text;
  for (;;) {
    const std::string head = take(in, 8);
    require(head.size() == 8, path, " is cut short: its last chunk is not there");
    const uint32_t length = big_endian(head);
    const std::string type = head.substr(4);
    if (type == "IEND") return text;
    if (type != kType || length > kLongest) {
      in.seekg(std::streamoff{length} + 4, std::ios::cur);
      continue;
    }
    const std::string body = take(in, length), sum = take(in, 4);
    require(sum.size() == 4 && checksum(type + body) == big_endian(sum), path,
            " is damaged or cut short: the checksum of a text differs");
    const size_t end = body.find('\0');
    if (end != body.npos && std::string_view(body).substr(end).starts_with(kPlain))
      text[body.substr(0, end)] = body.substr(end + kPlain.size());
  }
}

}  // namespace orrery::media
