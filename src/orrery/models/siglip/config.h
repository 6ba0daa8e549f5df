#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace orrery::siglip {

/// What the vision tower of a SigLIP2 NaFlex checkpoint is, and how pictures are brought to its patches (spec
/// cosmos-transfer2.5 §2.4). Initial values are transformers' defaults, which published files leave out.
struct Config {
  int64_t width = 768, mlp_width = 3072, layers = 12, heads = 12;
  int64_t patch = 16;  // side in pixels
  int64_t table_side =
      16;  // positions are learned on a square of this side and stretched to a picture's grid
  double norm_eps = 1e-6;
  int64_t max_patches = 256;  // rows of every result; what a picture does not fill is padded
  double rescale = 1.0 / 255;
  std::array<double, 3> mean = {0.5, 0.5, 0.5}, deviation = {0.5, 0.5, 0.5};

  int64_t patch_features() const { return 3 * patch * patch; }
};

/// config.json (its `vision_config`) and preprocessor_config.json of a checkpoint's folder. Errors of kind
/// checkpoint, naming file and field, for missing or impossible ones or if the two files disagree;
/// unsupported for another activation, another number of channels, another filter than bilinear and for a
/// step left out.
Config read_config(const std::string& folder);

}  // namespace orrery::siglip
