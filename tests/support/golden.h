#pragma once
// Golden folders: case.json says what is checked and how closely, golden.safetensors holds `<case>/<tensor>`.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::testing {

using Json = nlohmann::json;
namespace fs = std::filesystem;

inline fs::path golden_root() {
  const char* chosen = std::getenv("ORRERY_GOLDEN");
  return chosen && *chosen ? fs::path(chosen) : fs::path(ORRERY_SOURCE_DIR) / "tests/golden";
}

/// Every folder below golden_root()/topic (or that folder itself) that holds a case.json, sorted.
inline std::vector<fs::path> golden_folders(const std::string& topic) {
  std::vector<fs::path> found;
  const fs::path root = golden_root() / topic;
  if (!fs::exists(root)) return found;
  if (fs::exists(root / "case.json")) found.push_back(root);
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.path().filename() == "case.json" && entry.path().parent_path() != root)
      found.push_back(entry.path().parent_path());
  std::sort(found.begin(), found.end());
  return found;
}

inline Json read_json(const fs::path& path) {
  std::ifstream in(path);
  return Json::parse(in);
}

/// All tensors of a safetensors file, copied. Deliberately not the product's reader: tests of that reader use
/// this one.
inline std::map<std::string, Tensor> read_tensors(const fs::path& path) {
  static const std::map<std::string, at::ScalarType> kTypes = {
      {"F32", at::kFloat}, {"F64", at::kDouble}, {"BF16", at::kBFloat16}, {"F16", at::kHalf},
      {"I64", at::kLong},  {"I32", at::kInt},    {"U8", at::kByte},       {"BOOL", at::kBool}};
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("no golden file " + path.string());
  uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), 8);
  std::string header(length, ' ');
  in.read(header.data(), static_cast<std::streamsize>(length));
  std::map<std::string, Tensor> tensors;
  const Json parsed = Json::parse(header);  // items() refers to it
  for (const auto& [name, entry] : parsed.items()) {
    if (name == "__metadata__") continue;
    Tensor t = at::empty(entry["shape"].get<std::vector<int64_t>>(), kTypes.at(entry["dtype"]));
    in.seekg(static_cast<std::streamoff>(8 + length + entry["data_offsets"][0].get<uint64_t>()));
    in.read(static_cast<char*>(t.data_ptr()), static_cast<std::streamsize>(t.nbytes()));
    tensors[name] = t;
  }
  return tensors;
}

inline double rms(const Tensor& t) { return t.to(at::kDouble).pow(2).mean().sqrt().item<double>(); }

inline double max_abs(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  if (got.sizes() != expected.sizes()) return INFINITY;
  return (got.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
}

/// max |got − expected| / rms(expected)
inline double max_abs_over_rms(const Tensor& got, const Tensor& expected) {
  return max_abs(got, expected) / rms(expected);
}

}  // namespace orrery::testing
