#pragma once
#include <string>
#include <string_view>

namespace orrery {

/// A family of models that orrery runs.
struct Family {
  std::string_view name;
  std::string_view class_name;  // of its diffusers pipeline, in model_index.json
};

/// The family whose pipeline has this class. Error of kind unsupported that lists the families there are.
const Family& family_of(const std::string& class_name);

}  // namespace orrery
