#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::config {

/// What an error message puts before the name of a field, for example "robots.json:3: ".
using Locate = std::function<std::string(const std::string& field)>;

// T is Request, Plan or Settings.

/// The canonical spelling of a field as files write it (aliases, dashes for underscores), or "" if there is
/// none.
template <class T>
std::string field_named(std::string_view name);

/// Every canonical name, in order.
template <class T>
std::vector<std::string> field_names();

/// The struct that the object describes: null is not set, everything else must be a field, once, of its type;
/// otherwise an Error of kind request (unknown names come with the nearest known one).
template <class T>
T from_json(const nlohmann::json& object, const Locate& locate = {});

/// Every field that is set, in order, a list of one as its value; from_json gives the same struct back.
template <class T>
nlohmann::ordered_json to_json(const T& value);

}  // namespace orrery::config
