#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "orrery/base/error.h"
#include "orrery/base/text.h"

namespace orrery {

/// A checkpoint's config.json: fields by name, absent and null ones answered by the default. Errors of kind
/// checkpoint name the file and the field.
class JsonConfig {
 public:
  explicit JsonConfig(const std::string& path) : path_(path) {
    std::string text;
    try {
      text = read_file(path);
    } catch (const Error& e) {
      throw Error(ErrorKind::kCheckpoint, e.message(), "missing_file");
    }
    json_ = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json_.is_object())
      throw Error(ErrorKind::kCheckpoint, path + ": expected a JSON object", "invalid_header");
  }

  template <class T>
  T get(const char* name, T otherwise) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return otherwise;
    try {
      return found->get<T>();
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorKind::kCheckpoint,
                  concat(path_, ": ", name, " is ", found->dump(), ", which is of the wrong type"),
                  "invalid_header");
    }
  }

  /// Error of kind unsupported, naming the file, if the condition holds.
  template <class... Args>
  void refuse(bool is_variant, const Args&... what) const {
    if (is_variant) fail(ErrorKind::kUnsupported, path_, ": ", what...);
  }

  const nlohmann::json& json() const { return json_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  nlohmann::json json_;
};

}  // namespace orrery
