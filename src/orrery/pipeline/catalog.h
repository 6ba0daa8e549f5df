#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "orrery/pipeline/pipeline.h"

namespace orrery::pipeline {

/// A family of models that orrery runs.
struct Family {
  std::string_view name;
  std::string_view class_name;  // of its diffusers pipeline, in model_index.json

  /// Opens a checkpoint of the family: reads its configurations and checks every tensor's name and shape;
  /// weights stay in their files. dtype: the compute type of transformer and text encoder; the VAE is float32
  /// on a CPU. Errors of find_layout, of the configurations, of the Loader and of adapt (checkpoint.h).
  std::unique_ptr<Pipeline> (*open)(const config::Settings& settings, at::ScalarType dtype);
};

/// The family whose pipeline has this class. Error of kind unsupported that lists the families there are.
const Family& family_of(const std::string& class_name);

/// Opens the checkpoint that `settings` name in its family.
std::unique_ptr<Pipeline> open(const config::Settings& settings, at::ScalarType dtype);

}  // namespace orrery::pipeline
