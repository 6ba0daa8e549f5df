#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "orrery/weights/refuse.h"
#include "orrery/weights/safetensors.h"

namespace orrery::weights {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kLongestIndex = 16 << 20;  // published ones have about 100 kB
constexpr int kDeepest = 8;

/// The text as JSON; a name that occurs twice in one object is an error, as are trees deeper than any index
/// is.
Json parse_strictly(std::string_view text, const std::string& path) {
  std::vector<std::set<std::string>> names;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) refuse(Fault::kInvalidHeader, path, ": nested deeper than ", kDeepest);
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
      refuse(Fault::kInvalidHeader, path, ": ", shown(parsed.get<std::string>()), " occurs twice");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::exception& error) {  // besides parse_error also out_of_range (the number 1e9999)
    refuse(Fault::kInvalidHeader, path, ": not JSON: ", shown(error.what()));
  }
}

void check_is_file_name(const std::string& shard, const std::string& path) {
  if (shard.empty() || shard == "." || shard == ".." ||
      shard.find_first_of(std::string_view("/\\\0", 3)) != shard.npos)
    refuse(Fault::kInvalidPath, path, ": expected shards beside the index, found ", shown(shard));
}

}  // namespace

std::map<std::string, std::string> read_safetensors_index(std::string_view text, const std::string& path) {
  if (text.size() > kLongestIndex)
    refuse(Fault::kInvalidHeader, path, ": expected at most ", kLongestIndex, " bytes, found ", text.size());
  const Json json = parse_strictly(text, path);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    refuse(Fault::kInvalidHeader, path, ": expected {weight_map: {name: shard}}");
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : json["weight_map"].items()) {
    if (!shard.is_string())
      refuse(Fault::kInvalidHeader, path, ": ", shown(name), ": expected a file name, found ",
             shard.type_name());
    check_is_file_name(shards[name] = shard.get<std::string>(), path);
  }
  return shards;
}

TensorMap open_indexed(const std::string& folder, const std::string& stem) {
  const fs::path whole = fs::path(folder) / (stem + ".safetensors");
  const std::string index = whole.string() + ".index.json";
  std::error_code ignored;  // what cannot be looked at is not there
  if (fs::exists(whole, ignored)) return open_safetensors(whole.string());
  if (!fs::exists(index, ignored))
    refuse(Fault::kMissingFile, folder, ": expected ", stem, ".safetensors or ", stem,
           ".safetensors.index.json");

  const auto shard_of = read_safetensors_index(map_file(index).text(), index);
  std::set<std::string> shards;
  for (const auto& [name, shard] : shard_of) shards.insert(shard);
  TensorMap tensors;
  for (const auto& shard : shards)
    for (auto& [name, tensor] : open_safetensors((fs::path(folder) / shard).string())) {
      const auto expected = shard_of.find(name);
      if (expected == shard_of.end() || expected->second == shard)
        tensors.insert_or_assign(name, std::move(tensor));
    }
  for (const auto& [name, shard] : shard_of)
    if (!tensors.contains(name))
      refuse(Fault::kMissingKey, index, ": ", shown(name), " is not in its shard ", shown(shard));
  return tensors;
}

}  // namespace orrery::weights
