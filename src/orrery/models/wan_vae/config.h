#pragma once
#include <string>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::wan_vae {

/// What a Wan 2.1 causal video VAE is: the fields of diffusers' AutoencoderKLWan with the published values
/// (spec cosmos-predict2.5 §8).
struct Config {
  int64_t base_dim = 96, z_dim = 16, channels = 3, res_blocks = 2;
  std::vector<int64_t> dim_mult = {1, 2, 4, 4};
  std::vector<bool> temporal_downsample = {false, true,
                                           true};  // one for each resampling, the encoder's order
  std::vector<double> latents_mean = {-0.7571, -0.7089, -0.9113, 0.1075,  -0.1745, 0.9653,  -0.1517, 1.5508,
                                      0.4134,  -0.0715, 0.5517,  -0.3632, -0.1922, -0.9497, 0.2503,  -0.2921};
  std::vector<double> latents_std = {2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
                                     3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160};

  int64_t levels() const { return static_cast<int64_t>(dim_mult.size()); }
  int64_t dim(int64_t level) const { return base_dim * dim_mult[static_cast<size_t>(level)]; }
  bool temporal(int64_t resampling) const { return temporal_downsample[static_cast<size_t>(resampling)]; }
  int64_t spatial_factor() const { return int64_t{1} << (levels() - 1); }
  int64_t temporal_factor() const;

  /// Latent frames of a clip and back: F = temporal_factor · (T − 1) + 1.
  int64_t latent_frames(int64_t frames) const { return 1 + (frames - 1) / temporal_factor(); }
  int64_t frames(int64_t latent_frames) const { return temporal_factor() * (latent_frames - 1) + 1; }
};

/// vae/config.json of the diffusers layout. Error of kind checkpoint for an impossible field, of kind
/// unsupported for a variant that this model is not (Wan 2.2's residual blocks and patches, attention inside
/// the levels).
Config read_config(const std::string& path);

}  // namespace orrery::wan_vae
