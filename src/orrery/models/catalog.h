#pragma once
#include <span>
#include <string>
#include <string_view>

namespace orrery {

/// A family of models that orrery runs.
struct Family {
  std::string_view name;
  std::string_view class_name;  // of its diffusers pipeline, in model_index.json
};

/// Every family: the one list to which a new one is added (docs/adding-a-model.md).
std::span<const Family> catalog();

/// The family whose pipeline has this class. Error of kind unsupported that lists the families there are.
const Family& family_of(const std::string& class_name);

}  // namespace orrery
