#include "orrery/models/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "orrery/base/error.h"

namespace orrery::tokenizer {
namespace {

// Stacked marks of real text and of "zalgo" text stay in the tens.
constexpr int kLongestMarkRun = 1000;

const utf8proc_uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const utf8proc_uint8_t*>(text.data());
}

void append_nfc(std::string_view text, std::string& out) {
  if (text.empty()) return;
  utf8proc_uint8_t* mapped = nullptr;
  const auto length = utf8proc_map(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  ensure(length >= 0, "utf8proc: ", utf8proc_errmsg(length));
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
}

}  // namespace

void require_utf8(std::string_view text) {
  int marks = 0;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length =
        utf8proc_iterate(bytes_of(text) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    require(length > 0, "the text is not valid UTF-8 at byte ", at);
    marks = utf8proc_get_property(code)->combining_class > 0 ? marks + 1 : 0;
    require(marks <= kLongestMarkRun, "the text has more than ", kLongestMarkRun,
            " combining marks in a row, ending at byte ", at);
    at += static_cast<size_t>(length);
  }
}

std::string nfc(std::string_view text) {
  require_utf8(text);
  // utf8proc (up to 2.8) lets U+11A7, one before the first final consonant, vanish into a Hangul syllable. It
  // composes with nothing, so the text may be cut on both sides of it.
  constexpr std::string_view kBeforeFirstFinal = "\u11a7";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(kBeforeFirstFinal, at), text.size());
    append_nfc(text.substr(at, end - at), out);
    if (end < text.size()) out += kBeforeFirstFinal;
    at = end + kBeforeFirstFinal.size();
  }
  return out;
}

}  // namespace orrery::tokenizer
