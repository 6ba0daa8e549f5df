#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::weights {

/// The scale of ΔW as a configuration of peft gives it: alpha / rank, or alpha / √rank with use_rslora. It
/// speaks for modules without an alpha of their own.
class LoraConfig {
 public:
  /// `text`: JSON, as adapter_config.json of peft, or with "transformer." before each field, as diffusers
  /// stores it under lora_adapter_metadata; fields of other components are not looked at. `where` is for
  /// messages. Errors: invalid_header if it is not such an object; unsupported for use_dora.
  LoraConfig(const std::string& text, const std::string& where);

  /// `module`: a dotted name, with or without prefixes. A name in alpha_pattern stands for the modules that
  /// end with it, as in peft; "^" before it demands the whole name.
  double scale(std::string_view module, int64_t rank) const;

 private:
  std::optional<double> alpha_;
  std::map<std::string, double> patterns_;
  bool rslora_ = false;
};

}  // namespace orrery::weights
