#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/fields.h"

// One value of a field, from a word of the command line or from a JSON value. Errors are of kind request and
// read "LABEL: expected an integer, found "wide"".
namespace orrery::config {

/// "text" with escapes, on one line, at most 80 characters, always valid UTF-8: for error messages.
std::string in_quotes(std::string_view text);

void read_value(bool& value, const std::string& word, const std::string& label);
void read_value(int64_t& value, const std::string& word, const std::string& label);
void read_value(double& value, const std::string& word, const std::string& label);
void read_value(std::string& value, const std::string& word, const std::string& label);

/// The elements of an array, or the value itself.
void for_each_item(const nlohmann::json& json, const std::function<void(const nlohmann::json&)>& fn);

void read_value(bool& value, const nlohmann::json& json, const std::string& label);
void read_value(int64_t& value, const nlohmann::json& json, const std::string& label);
void read_value(double& value, const nlohmann::json& json, const std::string& label);
void read_value(std::string& value, const nlohmann::json& json, const std::string& label);

/// A list, or its only element.
template <class T>
void read_value(std::vector<T>& value, const nlohmann::json& json, const std::string& label) {
  for_each_item(json, [&](const nlohmann::json& item) {
    T read{};
    read_value(read, item, label);
    value.push_back(std::move(read));
  });
}

/// The position of the word among the names.
size_t read_name(std::span<const std::string_view> names, const std::string& word, const std::string& label);

template <NamedEnum E, class Source>
void read_value(E& value, const Source& source, const std::string& label) {
  std::string word;
  read_value(word, source, label);
  constexpr auto kNames = names_of(E{});
  value = static_cast<E>(read_name(kNames, word, label));
}

template <class T, class Source>
void read_value(std::optional<T>& value, const Source& source, const std::string& label) {
  T read{};
  read_value(read, source, label);
  value = std::move(read);
}

}  // namespace orrery::config
