#include "orrery/config/value.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"

namespace orrery::config {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& label, std::string_view expected, const std::string& found) {
  fail(ErrorKind::kRequest, label, ": expected ", expected, ", found ", found);
}

std::string describe(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  if (json.is_number_float()) return concat(json.get<double>());  // JSON itself has no nan
  return json.is_string() ? in_quotes(json.get_ref<const std::string&>()) : json.dump();
}

template <class Number>
bool parse_number(const std::string& word, Number& value) {
  const char* begin = word.data() + (word.size() > 1 && word[0] == '+' && word[1] != '-');
  const auto [rest, error] = std::from_chars(begin, word.data() + word.size(), value);
  return error == std::errc() && rest == word.data() + word.size();
}

constexpr std::string_view kInteger = "an integer", kNumber = "a finite number", kBool = "true or false";

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 80;
  const bool cut = text.size() > kLongest;
  std::string out = Json(text.substr(0, kLongest)).dump(-1, ' ', false, Json::error_handler_t::replace);
  // JSON leaves DEL and the C1 controls alone, which a terminal might obey.
  std::string plain;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto c = static_cast<unsigned char>(out[i]);
    const bool c1 = c == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0;
    if (c1) ++i;
    plain += c == 0x7F || c1 ? '?' : out[i];
  }
  return cut ? plain + "…" : plain;
}

void read_value(bool& value, const std::string& word, const std::string& label) {
  if (word != "true" && word != "false") refuse(label, kBool, in_quotes(word));
  value = word == "true";
}

void read_value(int64_t& value, const std::string& word, const std::string& label) {
  if (!parse_number(word, value)) refuse(label, kInteger, in_quotes(word));
}

void read_value(double& value, const std::string& word, const std::string& label) {
  if (!parse_number(word, value) || !std::isfinite(value)) refuse(label, kNumber, in_quotes(word));
}

void read_value(std::string& value, const std::string& word, const std::string&) { value = word; }

void read_value(bool& value, const Json& json, const std::string& label) {
  if (!json.is_boolean()) refuse(label, kBool, describe(json));
  value = json.get<bool>();
}

void read_value(int64_t& value, const Json& json, const std::string& label) {
  // 93.0 is an integer to the reference too; doubles are exact up to 2^53.
  constexpr double kExact = 9007199254740992.0;
  if (json.is_number_float()) {
    const double number = json.get<double>();
    if (!(std::abs(number) <= kExact) || number != std::trunc(number))
      refuse(label, kInteger, describe(json));
    value = static_cast<int64_t>(number);
    return;
  }
  const bool too_large = json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!json.is_number_integer() || too_large) refuse(label, kInteger, describe(json));
  value = json.get<int64_t>();
}

void read_value(double& value, const Json& json, const std::string& label) {
  if (!json.is_number() || !std::isfinite(json.get<double>())) refuse(label, kNumber, describe(json));
  value = json.get<double>();
}

void read_value(std::string& value, const Json& json, const std::string& label) {
  if (!json.is_string()) refuse(label, "a string", describe(json));
  value = json.get<std::string>();
}

void for_each_item(const Json& json, const std::function<void(const Json&)>& fn) {
  if (!json.is_array()) return fn(json);
  for (const Json& item : json) fn(item);
}

size_t read_name(std::span<const std::string_view> names, const std::string& word, const std::string& label) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == word) return i;
  const std::vector<std::string> legal(names.begin(), names.end());
  refuse(label, join(legal, " or "), in_quotes(word) + did_you_mean(word, legal));
}

}  // namespace orrery::config
