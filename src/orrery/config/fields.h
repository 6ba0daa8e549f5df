#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace orrery::config {

/// What a visitor of `fields` hears about a member. Every struct of this folder has one static
///   template <class Visitor> static void fields(Visitor&& visit);
/// that calls visit(&Struct::member, Field{…}) for each member, in the order of the help text. JSON, flags,
/// help and merging are visitors. Members are bool, int64_t, double, std::string, a named enum, an optional
/// of these, or a list of strings or numbers.
struct Field {
  std::string_view name;  // snake_case; dashes and underscores are the same to a user
  std::string_view help;  // one line
  std::string_view aliases =
      {};             // other spellings, comma-separated; a single letter is a short option and no file field
  bool path = false;  // in a file: relative to that file's folder
};

/// An enum whose values are named, in order from 0, by `constexpr std::array<std::string_view, N>
/// names_of(E)`.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) {
  names_of(e);
};

template <NamedEnum E>
constexpr std::string_view to_string(E value) {
  return names_of(value)[static_cast<size_t>(value)];
}

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// A list is not set while it is empty; values without "not set" always are.
template <class T>
constexpr bool is_set(const T&) {
  return true;
}
template <class T>
constexpr bool is_set(const std::optional<T>& value) {
  return value.has_value();
}
template <class T>
bool is_set(const std::vector<T>& list) {
  return !list.empty();
}

template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;

}  // namespace orrery::config
