#include "orrery/models/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "orrery/base/error.h"

namespace orrery::tokenizer {
namespace {

// The pattern's \s is Unicode White_Space; PCRE2's also takes U+180E, which has not been white space since
// Unicode 6.3.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

std::string with_white_space_spelled_out(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two == "\\s" || two == "\\S") {
      const std::string_view open = in_class ? "" : two == "\\s" ? "[" : "[^";
      out.append(open).append(kWhiteSpace).append(in_class ? "" : "]");
      ++i;
    } else {
      if (pattern[i] == '[') in_class = true;
      if (pattern[i] == ']') in_class = false;
      out += pattern[i];
    }
  }
  return out;
}

std::string message_of(int code) {
  unsigned char text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

PreTokenizer::PreTokenizer() {
  const std::string pattern = with_white_space_spelled_out(kPattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  ensure(code, "pre-tokeniser pattern, offset ", offset, ": ", message_of(error));
  code_ = std::shared_ptr<const void>(
      code, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
  // Without the JIT (some systems forbid writable code) matching is slower and otherwise the same.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(code, nullptr), &pcre2_match_data_free);
  ensure(match != nullptr, "pcre2: no memory for match data");
  for (size_t at = 0; at < text.size();) {
    // The caller checked the encoding: PCRE2 would check the rest of the text again at every match.
    const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, match.get(), nullptr);
    ensure(found > 0, "pre-tokeniser: no piece at byte ", at, ": ", message_of(found));
    const size_t end = pcre2_get_ovector_pointer(match.get())[1];
    piece(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace orrery::tokenizer
