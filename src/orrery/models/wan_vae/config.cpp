// Fields: diffusers, models/autoencoders/autoencoder_kl_wan.py (0.42.1).
#include "orrery/models/wan_vae/config.h"

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"

namespace orrery::wan_vae {
namespace {

void check(const Config& c, const std::string& path) {
  const auto positive = [&](int64_t value, const char* name) {
    if (value < 1 || value > 65536)
      fail(ErrorKind::kCheckpoint, path, ": ", name, " is ", value, "; expected a positive count");
  };
  positive(c.base_dim, "base_dim");
  positive(c.z_dim, "z_dim");
  positive(c.channels, "in_channels");
  positive(c.res_blocks, "num_res_blocks");
  if (c.dim_mult.empty() || c.dim_mult.size() > 8)
    fail(ErrorKind::kCheckpoint, path, ": dim_mult has ", c.dim_mult.size(), " entries; expected 1 to 8");
  for (const int64_t m : c.dim_mult) positive(m, "an entry of dim_mult");
  // The decoder's upsampling halves the channels, rounding down (spec §8.1).
  for (int64_t level = 1; level < c.levels(); ++level)
    if (c.dim(level) < 2)
      fail(ErrorKind::kCheckpoint, path, ": level ", level, " has ", c.dim(level),
           " channels; expected at least 2");
  if (c.temporal_downsample.size() + 1 != c.dim_mult.size())
    fail(ErrorKind::kCheckpoint, path, ": temperal_downsample has ", c.temporal_downsample.size(),
         " entries; expected ", c.dim_mult.size() - 1);
  for (const auto* statistics : {&c.latents_mean, &c.latents_std})
    if (statistics->size() != static_cast<size_t>(c.z_dim))
      fail(ErrorKind::kCheckpoint, path, ": latents_mean and latents_std have ", statistics->size(),
           " entries; expected z_dim = ", c.z_dim);
  if (std::any_of(c.latents_std.begin(), c.latents_std.end(), [](double s) { return !(s > 0); }))
    fail(ErrorKind::kCheckpoint, path, ": latents_std has an entry that is not positive");
}

void refuse_variants(const JsonConfig& json, const Config& c) {
  const auto refuse = [&](bool is_variant, const char* what) {
    json.refuse(is_variant, what, " belongs to another VAE than Wan 2.1's");
  };
  refuse(json.get("is_residual", false), "is_residual = true");
  refuse(json.get<int64_t>("patch_size", 1) != 1, "patch_size");
  refuse(!json.get("attn_scales", std::vector<double>{}).empty(), "attn_scales");
  refuse(json.get("decoder_base_dim", c.base_dim) != c.base_dim, "decoder_base_dim");
  refuse(json.get("out_channels", c.channels) != c.channels, "out_channels");
}

}  // namespace

int64_t Config::temporal_factor() const {
  return int64_t{1} << std::count(temporal_downsample.begin(), temporal_downsample.end(), true);
}

Config read_config(const std::string& path) {
  const JsonConfig json(path);
  Config c;
  c.base_dim = json.get("base_dim", c.base_dim);
  c.z_dim = json.get("z_dim", c.z_dim);
  c.channels = json.get("in_channels", c.channels);
  c.res_blocks = json.get("num_res_blocks", c.res_blocks);
  c.dim_mult = json.get("dim_mult", c.dim_mult);
  c.temporal_downsample = json.get("temperal_downsample", c.temporal_downsample);  // sic
  c.latents_mean = json.get("latents_mean", c.latents_mean);
  c.latents_std = json.get("latents_std", c.latents_std);
  check(c, path);
  refuse_variants(json, c);
  return c;
}

}  // namespace orrery::wan_vae
