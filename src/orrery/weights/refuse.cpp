#include "orrery/weights/refuse.h"

#include <iterator>

namespace orrery::weights {

namespace {

constexpr std::string_view kNames[] = {
    "unsafe_pickle", "invalid_tensor",   "corrupt_archive", "corrupt_pickle",  "unsupported",
    "truncated",     "header_too_large", "invalid_header",  "invalid_offsets", "invalid_shape",
    "missing_file",  "missing_key",      "unknown_key",     "duplicate_key",   "invalid_path",
};
static_assert(std::size(kNames) == static_cast<size_t>(Fault::kInvalidPath) + 1);

}  // namespace

std::string_view to_string(Fault fault) { return kNames[static_cast<size_t>(fault)]; }

std::string shown(std::string_view text) {
  constexpr size_t kLongest = 200;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c >= ' ' && c <= '~')
      out += c;
    else
      out += {'\\', 'x', kHex[byte / 16], kHex[byte % 16]};
  }
  return text.size() > kLongest ? out + "…" : out;
}

}  // namespace orrery::weights
