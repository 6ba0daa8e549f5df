// Fields: huggingface/transformers, models/siglip2/configuration_siglip2.py and
// image_processing_siglip2.py.
#include "orrery/models/siglip/config.h"

#include <algorithm>
#include <cmath>

#include "orrery/models/json_config.h"

namespace orrery::siglip {
namespace {

using Json = nlohmann::json;

// Far beyond any model. What is multiplied with each other has the lower limits, and the patches decide how
// much is allocated.
constexpr int64_t kMost = int64_t{1} << 20, kLargestPatch = 256, kMostPatches = 4096, kMostLayers = 1024;

/// A count in an object of the file at `path`; an absent or null one is `otherwise`.
int64_t count(const std::string& path, const Json& object, const char* name, int64_t otherwise,
              int64_t most = kMost) {
  const Json value = object.value(name, Json());
  if (value.is_null()) return otherwise;
  if (!value.is_number_integer() || value < 1 || value > most)
    fail(ErrorKind::kCheckpoint, path, ": ", name, " is ", value.dump(), "; expected a count up to ", most);
  return value.get<int64_t>();
}

void read_tower(const JsonConfig& file, Config& c) {
  const std::string& path = file.path();
  const Json vision = file.json().value("vision_config", Json());
  if (!vision.is_object())
    fail(ErrorKind::kCheckpoint, path, ": has no vision_config; expected a SigLIP2 checkpoint");
  c.width = count(path, vision, "hidden_size", c.width);
  c.mlp_width = count(path, vision, "intermediate_size", c.mlp_width);
  c.layers = count(path, vision, "num_hidden_layers", c.layers, kMostLayers);
  c.heads = count(path, vision, "num_attention_heads", c.heads);
  c.patch = count(path, vision, "patch_size", c.patch, kLargestPatch);
  const int64_t positions = count(path, vision, "num_patches", c.table_side * c.table_side);
  c.table_side = std::llround(std::sqrt(static_cast<double>(positions)));
  if (c.table_side * c.table_side != positions)
    fail(ErrorKind::kCheckpoint, path, ": num_patches is ", positions, "; expected a square number");
  if (c.width % c.heads != 0)
    fail(ErrorKind::kCheckpoint, path, ": a vision tower of width ", c.width, " with ", c.heads,
         " heads; expected a multiple of the heads");
  const Json eps = vision.value("layer_norm_eps", Json(c.norm_eps));
  if (!eps.is_number() || !(eps > 0))
    fail(ErrorKind::kCheckpoint, path, ": layer_norm_eps is ", eps.dump(), "; expected a positive number");
  c.norm_eps = eps.get<double>();
  const Json act = vision.value("hidden_act", Json("gelu_pytorch_tanh"));
  file.refuse(act != "gelu_pytorch_tanh", "hidden_act is ", act.dump(), "; expected gelu_pytorch_tanh");
  const Json channels = vision.value("num_channels", Json(3));
  file.refuse(channels != 3, "num_channels is ", channels.dump(), "; expected 3");
}

void read_processor(const JsonConfig& file, Config& c) {
  const std::string& path = file.path();
  constexpr int kBilinear = 2;  // PIL.Image.Resampling
  c.max_patches = count(path, file.json(), "max_num_patches", c.max_patches, kMostPatches);
  c.rescale = file.get("rescale_factor", c.rescale);
  c.mean = file.get("image_mean", c.mean);
  c.deviation = file.get("image_std", c.deviation);
  if (!(c.rescale > 0) || !(*std::ranges::min_element(c.deviation) > 0))
    fail(ErrorKind::kCheckpoint, path, ": rescale_factor or image_std is not positive");
  if (const int64_t patch = file.get("patch_size", int64_t{16}); patch != c.patch)
    fail(ErrorKind::kCheckpoint, path, ": patch_size is ", patch, "; the vision tower has ", c.patch);
  for (const char* step : {"do_resize", "do_rescale", "do_normalize"})
    file.refuse(!file.get(step, true), step, " is false; expected every step");
  const int filter = file.get("resample", kBilinear);
  file.refuse(filter != kBilinear, "resample is ", filter, "; expected ", kBilinear, " (bilinear)");
}

}  // namespace

Config read_config(const std::string& folder) {
  Config c;
  read_tower(JsonConfig(folder + "/config.json"), c);
  read_processor(JsonConfig(folder + "/preprocessor_config.json"), c);
  return c;
}

}  // namespace orrery::siglip
