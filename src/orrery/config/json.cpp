#include "orrery/config/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/plan.h"
#include "orrery/config/request.h"
#include "orrery/config/settings.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

bool listed(std::string_view aliases, std::string_view name) {
  if (name.size() < 2) return false;
  const std::string all = concat(",", aliases, ","), one = concat(",", name, ",");
  return all.find(one) != std::string::npos;
}

template <class V>
nlohmann::ordered_json value_json(const V& value) {
  if constexpr (NamedEnum<V>)
    return std::string(to_string(value));
  else if constexpr (kIsList<V>)
    return value.size() == 1 ? nlohmann::ordered_json(value[0]) : nlohmann::ordered_json(value);
  else
    return value;
}

}  // namespace

template <class T>
std::string field_named(std::string_view name) {
  std::string wanted(name), found;
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  T::fields([&](auto, const Field& field) {
    if (field.name == wanted || listed(field.aliases, wanted)) found = field.name;
  });
  return found;
}

template <class T>
std::vector<std::string> field_names() {
  std::vector<std::string> names;
  T::fields([&](auto, const Field& field) { names.emplace_back(field.name); });
  return names;
}

template <class T>
T from_json(const nlohmann::json& object, const Locate& locate) {
  require(object.is_object(), locate ? locate("") : "", "expected an object of fields, found ",
          object.type_name());
  T result;
  std::set<std::string> seen;
  for (const auto& [key, json] : object.items()) {
    const std::string name = field_named<T>(key), before = locate ? locate(key) : "";
    if (name.empty()) {
      const std::string near = did_you_mean(key, field_names<T>());
      fail(ErrorKind::kRequest, before, "unknown field ", in_quotes(key),
           near.empty() ? "; orrery generate --help lists all" : near);
    }
    require(seen.insert(name).second, before, "field ", name, " is given twice");
    if (json.is_null()) continue;
    T::fields([&, &found = json](auto member, const Field& field) {
      if (field.name == name) read_value(result.*member, found, concat(before, name));
    });
  }
  return result;
}

template <class T>
nlohmann::ordered_json to_json(const T& value) {
  auto object = nlohmann::ordered_json::object();
  T::fields([&](auto member, const Field& field) {
    const auto& found = value.*member;
    if (!is_set(found)) return;
    if constexpr (kIsOptional<std::decay_t<decltype(found)>>) {
      object[std::string(field.name)] = value_json(*found);
    } else {
      object[std::string(field.name)] = value_json(found);
    }
  });
  return object;
}

#define ORRERY_JSON(T)                                        \
  template std::string field_named<T>(std::string_view);      \
  template std::vector<std::string> field_names<T>();         \
  template T from_json(const nlohmann::json&, const Locate&); \
  template nlohmann::ordered_json to_json(const T&);
ORRERY_JSON(Request)
ORRERY_JSON(Plan)
ORRERY_JSON(Settings)
#undef ORRERY_JSON

}  // namespace orrery::config
