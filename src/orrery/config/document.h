#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::config {

/// A parameter file as a tree of objects, single values and lists of them, with the line of every key.
struct Document {
  std::string file;
  nlohmann::json root;
  std::map<std::vector<std::string>, int> lines;  // key path → line, from 1

  /// "FILE:LINE: " of the key, or "FILE: " if it is not there.
  std::string where(const std::vector<std::string>& path) const;
};

/// Both parse text that may be hostile: an Error of kind request, "FILE:LINE: …", for text that is not valid,
/// a list of lists or objects, a key given twice, objects deeper than `samples` need, and YAML aliases of
/// objects or beyond the size of the text.
Document parse_json(std::string_view text, const std::string& file, int first_line = 1);
Document parse_yaml(std::string_view text, const std::string& file);

}  // namespace orrery::config
