// numpy's format: numpy/lib/format.py, "Format Version 1.0" to "3.0".
#include "orrery/media/npy_header.h"

#include <array>
#include <charconv>
#include <optional>

#include "orrery/base/error.h"

namespace orrery::media {
namespace {

struct Number {
  std::string_view name;
  int bytes;
  bool is_signed;
};

constexpr std::array<Number, 9> kNumbers = {{{"|b1", 1, false},
                                             {"|u1", 1, false},
                                             {"|i1", 1, true},
                                             {"<u2", 2, false},
                                             {"<i2", 2, true},
                                             {"<u4", 4, false},
                                             {"<i4", 4, true},
                                             {"<u8", 8, false},
                                             {"<i8", 8, true}}};

/// The few kinds of Python literals that the header consists of.
class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  NpyHeader parse() {
    std::optional<std::string_view> descr;
    std::optional<bool> fortran;
    std::optional<std::vector<int64_t>> shape;
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr)
        descr = quoted();
      else if (key == "fortran_order" && !fortran)
        fortran = boolean();
      else if (key == "shape" && !shape)
        shape = tuple();
      else
        malformed();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty() || !descr || !fortran || !shape) malformed();
    require(!*fortran, "cannot read ", path_,
            ": its array is in Fortran order; expected C order (numpy.ascontiguousarray)");
    NpyHeader header = number(*descr);
    header.shape = std::move(*shape);
    return header;
  }

 private:
  [[noreturn]] void malformed() const {
    fail(ErrorKind::kRequest, "cannot read ", path_,
         ": its array header is damaged; expected {'descr': '|u1', 'fortran_order': False, "
         "'shape': (frames, height, width)} or the like");
  }

  void skip_space() {
    const size_t text = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(text == rest_.npos ? rest_.size() : text);
  }

  bool take(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) malformed();
  }

  /// A string in either kind of quotes, without regard to escapes: no legal one has any.
  std::string_view quoted() {
    skip_space();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) malformed();
    const size_t end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) malformed();
    const std::string_view value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    malformed();
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!take(')')) {
      skip_space();
      int64_t& value = values.emplace_back();
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc() || value < 0) malformed();
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  NpyHeader number(std::string_view descr) const {
    std::string known;
    for (const Number& n : kNumbers) {
      if (n.name == descr) return {n.bytes, n.is_signed, {}};
      known += concat(known.empty() ? "" : " ", n.name);
    }
    // Whatever a hostile file has here, the message stays a line of letters.
    std::string shown;
    for (const char c : descr.substr(0, 16)) shown += c >= ' ' && c <= '~' ? c : '?';
    fail(ErrorKind::kRequest, "cannot read ", path_, ": its array holds numbers of type ", shown,
         "; expected integers or booleans, one of ", known);
  }

  std::string_view rest_;
  const std::string& path_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& path) {
  return Parser(text, path).parse();
}

}  // namespace orrery::media
