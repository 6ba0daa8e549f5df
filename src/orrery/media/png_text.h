#pragma once
#include <string>

namespace orrery::media {

/// Text as a chunk of a PNG file, iTXt (PNG specification, §11.3.4.5): keyword, no compression, no language,
/// UTF-8. Error of kind request unless the key has 1 to 79 bytes. media/read.h has the way back.
std::string text_chunk(const std::string& key, const std::string& value);

}  // namespace orrery::media
