// huggingface/peft, src/peft/tuners/lora/config.py (fields) and utils/other.py, get_pattern_key; diffusers
// 0.42.1, loaders/peft.py (the prefix of a component).
#include "orrery/weights/lora_scale.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "orrery/weights/lora_key.h"
#include "orrery/weights/refuse.h"

namespace orrery::weights {
namespace {

using Json = nlohmann::json;

const Json* field(const Json& config, const std::string& name) {
  for (const auto& key : {"transformer." + name, name})
    if (const auto found = config.find(key); found != config.end() && !found->is_null()) return &*found;
  return nullptr;
}

double number(const Json& value, const std::string& name, const std::string& where) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    refuse(Fault::kInvalidHeader, where, ": ", name, ": expected a number, found ", shown(value.dump()));
  return value.get<double>();
}

bool flag(const Json& config, const std::string& name, const std::string& where) {
  const Json* value = field(config, name);
  if (value && !value->is_boolean())
    refuse(Fault::kInvalidHeader, where, ": ", name, ": expected true or false, found ",
           shown(value->dump()));
  return value && value->get<bool>();
}

bool names(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with('^')) return module == pattern.substr(1);
  return module.ends_with(pattern) &&
         (module.size() == pattern.size() || module[module.size() - pattern.size() - 1] == '.');
}

}  // namespace

LoraConfig::LoraConfig(const std::string& text, const std::string& where) {
  const Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) refuse(Fault::kInvalidHeader, where, ": expected a JSON object");
  if (flag(config, "use_dora", where)) refuse(Fault::kUnsupported, where, ": DoRA; expected plain LoRA");
  rslora_ = flag(config, "use_rslora", where);
  if (const Json* alpha = field(config, "lora_alpha")) alpha_ = number(*alpha, "lora_alpha", where);
  if (const Json* patterns = field(config, "alpha_pattern")) {
    if (!patterns->is_object())
      refuse(Fault::kInvalidHeader, where, ": alpha_pattern: expected an object, found ",
             shown(patterns->dump()));
    for (const auto& [pattern, alpha] : patterns->items())
      patterns_[pattern] = number(alpha, "alpha_pattern of " + shown(pattern), where);
  }
}

double LoraConfig::scale(std::string_view module, int64_t rank) const {
  std::optional<double> alpha = alpha_;
  for (const auto& [pattern, own] : patterns_)
    if (names(pattern, bare_module(module))) alpha = own;
  const auto r = static_cast<double>(rank);
  return alpha ? *alpha / (rslora_ ? std::sqrt(r) : r) : 1;
}

}  // namespace orrery::weights
