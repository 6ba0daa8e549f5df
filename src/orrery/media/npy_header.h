#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::media {

/// What numpy writes in front of an array's numbers. Internal to media/.
struct NpyHeader {
  int bytes = 1;               // of a number: 1, 2, 4 or 8
  bool is_signed = false;      // two's complement; booleans are unsigned bytes
  std::vector<int64_t> shape;  // not negative; everything else about it is the caller's to check
};

/// From the text of the header, a Python dictionary with descr, fortran_order and shape; `path` is for
/// messages. Errors of kind request: another text, numbers that are no little-endian integers or booleans,
/// Fortran order.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

}  // namespace orrery::media
