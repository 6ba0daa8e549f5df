#include "orrery/weights/lora.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "orrery/base/text.h"
#include "orrery/weights/lora_key.h"
#include "orrery/weights/lora_scale.h"
#include "orrery/weights/refuse.h"
#include "orrery/weights/safetensors.h"
#include "orrery/weights/source.h"

namespace orrery::weights {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDiffusersName = "pytorch_lora_weights.safetensors";
constexpr const char* kPeftName = "adapter_model.safetensors";
constexpr const char* kPeftConfig = "adapter_config.json";
constexpr const char* kMetadata = "lora_adapter_metadata";

std::string file_of(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is no folder; opening it says why
  if (!fs::is_directory(path, ignored)) {
    const std::string extension = fs::path(path).extension().string();
    if (extension == ".pt" || extension == ".pth" || extension == ".bin" || extension == ".ckpt")
      refuse(Fault::kUnsupported, path, ": expected LoRA as a .safetensors file");
    return path;
  }
  for (const char* name : {kDiffusersName, kPeftName})
    if (fs::exists(fs::path(path) / name, ignored)) return (fs::path(path) / name).string();
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(path, ignored))
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path().string());
  if (found.size() == 1) return found.front();
  refuse(Fault::kMissingFile, path, ": looked for ", kDiffusersName, ", ", kPeftName,
         " or exactly one other .safetensors; found ", found.size());
}

std::optional<LoraConfig> config_of(const std::string& file) {
  const auto metadata = safetensors_metadata(file);
  if (const auto found = metadata.find(kMetadata); found != metadata.end())
    return LoraConfig(found->second, concat(file, ": ", kMetadata));
  const fs::path beside = fs::path(file).parent_path() / kPeftConfig;
  std::error_code ignored;
  if (fs::path(file).filename() == kPeftName && fs::exists(beside, ignored))
    return LoraConfig(read_file(beside.string()), beside.string());
  return {};
}

struct Parts {
  Tensor down, up, alpha;
};

std::map<std::string, Parts> parts_of(const TensorMap& tensors, const std::string& path) {
  std::map<std::string, Parts> modules;
  for (const auto& [name, t] : tensors) {
    const auto key = parse_lora_key(name, path);
    auto& parts = modules[key.module];
    Tensor& place = key.role == LoraRole::kDown ? parts.down
                    : key.role == LoraRole::kUp ? parts.up
                                                : parts.alpha;
    if (place.defined())
      refuse(Fault::kDuplicateKey, path, ": ", shown(key.module), " is adapted twice, the second time by ",
             shown(name), "; expected one adapter in a file");
    place = t;
  }
  if (modules.empty()) refuse(Fault::kMissingKey, path, ": holds no tensors");
  return modules;
}

double alpha_of(const Tensor& t, const std::string& where) {
  const bool one = t.numel() == 1 && !t.is_complex();
  const double alpha = one ? t.to(at::kDouble).item<double>() : NAN;
  if (!std::isfinite(alpha))
    refuse(Fault::kInvalidTensor, where, "expected an alpha of one finite number, found ",
           one ? std::to_string(alpha) : concat("a tensor of shape ", t.sizes()));
  return alpha;
}

LoraModule checked(const std::string& name, const Parts& p, const std::optional<LoraConfig>& config,
                   const std::string& path) {
  const std::string where = concat(path, ": ", shown(name), ": ");
  if (!p.down.defined() || !p.up.defined())
    refuse(Fault::kMissingKey, where, "expected two factors, found no ",
           p.down.defined() ? "up (lora_B)"
           : p.up.defined() ? "down (lora_A)"
                            : "factors");
  if (p.down.dim() != 2 || p.up.dim() != 2 || p.down.size(0) != p.up.size(1) || p.down.size(0) == 0)
    refuse(Fault::kInvalidShape, where, "expected down [r, in] and up [out, r] with r > 0, found ",
           p.down.sizes(), " and ", p.up.sizes());
  if (!p.down.is_floating_point() || !p.up.is_floating_point())
    refuse(Fault::kInvalidTensor, where, "expected factors of floating point, found ",
           c10::toString(p.down.scalar_type()), " and ", c10::toString(p.up.scalar_type()));
  const int64_t rank = p.down.size(0);
  const double scale = p.alpha.defined() ? alpha_of(p.alpha, where) / static_cast<double>(rank)
                       : config          ? config->scale(name, rank)
                                         : 1;
  return {name, p.down, p.up, scale};
}

}  // namespace

Lora open_lora(const std::string& path) {
  Lora lora{file_of(path), {}};
  const auto config = config_of(lora.path);
  for (const auto& [name, parts] : parts_of(open_safetensors(lora.path), lora.path))
    lora.modules.push_back(checked(name, parts, config, lora.path));
  return lora;
}

LoraChoice parse_lora_choice(std::string_view text) {
  LoraChoice choice{std::string(text)};
  const size_t at = text.find_last_of(":=");
  const auto behind = at == text.npos ? std::string_view() : text.substr(at + 1);
  double strength = NAN;  // stays so if the number is too large
  const auto [end, fault] = std::from_chars(behind.begin(), behind.end(), strength);
  if (fault != std::errc::invalid_argument && end == behind.end())
    choice = {choice.path.substr(0, at), strength};
  require(!choice.path.empty(), "lora: expected PATH or PATH:STRENGTH, found ", shown(text));
  require(std::isfinite(choice.strength), "lora: expected a finite strength, found ", shown(text));
  return choice;
}

}  // namespace orrery::weights
