#pragma once
#include <string>
#include <string_view>

namespace orrery::tokenizer {

/// Unicode normalisation form C. Errors of kind request: bytes that are not UTF-8, and a run of combining
/// marks so long that it can be no writing (putting marks in order costs the square of the run).
std::string nfc(std::string_view text);

/// Error of kind request, naming the offset, unless the text is UTF-8 (no surrogates, no overlong forms).
void require_utf8(std::string_view text);

}  // namespace orrery::tokenizer
