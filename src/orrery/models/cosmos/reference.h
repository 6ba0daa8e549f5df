#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "orrery/models/cosmos/config.h"

namespace orrery::cosmos {

/// Where NVIDIA's code and diffusers compute different numbers from the same checkpoint (spec
/// cosmos-predict2.5 §12.1). Each field is named after the deviation; the two presets are what people compare
/// with.
struct Reference {
  std::string_view name;
  // In the transformer.
  double qk_norm_eps;
  bool bf16_rope_exponents;
  // In the sampler.
  bool integer_time;             // the network hears trunc(1000 σ)/1000 instead of σ
  bool numpy_noise;              // RandomState(seed) instead of torch's CPU generator
  bool extra_karras_evaluation;  // `steps` N means N + 1 evaluations on the karras schedule
  double skip_guidance_up_to;    // the negative branch is skipped for g up to this
  float conditional_time;        // time of the given frames, in sigma units
  // In the pixels and the VAE's surroundings.
  bool cover_crop;              // antialiased bilinear cover and centre crop instead of a stretch
  bool bf16_pixels;             // x/127.5 − 1 with each operation rounded to bfloat16
  bool bf16_latent_statistics;  // latent mean and 1/std as bfloat16 tensors
  bool truncate_pixels;         // to 8 bits by truncation instead of rounding
};

inline constexpr Reference kOfficial = {.name = "official",
                                        .qk_norm_eps = 1e-6,
                                        .bf16_rope_exponents = true,
                                        .integer_time = true,
                                        .numpy_noise = true,
                                        .extra_karras_evaluation = true,
                                        .skip_guidance_up_to = 0,
                                        .conditional_time = 0.1f * 0.001f,
                                        .cover_crop = true,
                                        .bf16_pixels = true,
                                        .bf16_latent_statistics = true,
                                        .truncate_pixels = true};

inline constexpr Reference kDiffusers = {.name = "diffusers",
                                         .qk_norm_eps = 1e-5,
                                         .bf16_rope_exponents = false,
                                         .integer_time = false,
                                         .numpy_noise = false,
                                         .extra_karras_evaluation = false,
                                         .skip_guidance_up_to = 1,
                                         .conditional_time = 0.0001f,
                                         .cover_crop = false,
                                         .bf16_pixels = false,
                                         .bf16_latent_statistics = false,
                                         .truncate_pixels = false};

/// The transformer's share of the reference's arithmetic.
inline TransformerConfig with_arithmetic(TransformerConfig config, const Reference& reference) {
  config.qk_norm_eps = reference.qk_norm_eps;
  config.bf16_rope_exponents = reference.bf16_rope_exponents;
  return config;
}

}  // namespace orrery::cosmos
