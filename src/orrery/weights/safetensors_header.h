#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::weights {

/// The header of a safetensors file: what lies where in the data that follow it.
struct SafetensorsHeader {
  struct Entry {
    std::string name;
    at::ScalarType dtype;
    Shape shape;
    uint64_t begin = 0, end = 0;  // bytes, counted from the start of the data
  };
  std::vector<Entry> entries;  // in the order of the data, which they cover without a gap
  std::map<std::string, std::string> metadata;
  uint64_t data_start = 0;  // bytes before the data
};

/// Reads and checks the header of `file`, the whole file's bytes; `path` is for messages. What it accepts,
/// the official reader accepts. Memory use is a small multiple of the header. Errors: truncated,
/// header_too_large (more than 100 MB, the format's limit), invalid_header, invalid_shape, invalid_offsets,
/// unsupported (a dtype).
SafetensorsHeader read_safetensors_header(std::string_view file, const std::string& path);

/// "F32", "BF16", …: the format's word for a dtype. Error: unsupported.
std::string_view safetensors_word(at::ScalarType dtype);

}  // namespace orrery::weights
