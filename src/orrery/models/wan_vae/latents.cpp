#include "orrery/models/wan_vae/latents.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/tensor.h>

#include "orrery/base/error.h"

namespace orrery::wan_vae {
namespace {

at::ScalarType dtype_of(Statistics statistics) {
  return statistics == Statistics::kBfloat16 ? at::kBFloat16 : at::kFloat;
}

/// One value for each latent channel.
Tensor column(const std::vector<double>& values, const Tensor& like, Statistics statistics) {
  return at::tensor(at::ArrayRef<double>(values))
      .to(like.device(), at::kFloat)
      .to(dtype_of(statistics))
      .view({-1, 1, 1, 1});
}

/// 1/std is taken of the rounded std and rounded again: bf16(1/2.8184) = 0.35546875.
Tensor inverse_std(const Config& config, const Tensor& like, Statistics statistics) {
  return at::reciprocal(column(config.latents_std, like, statistics));
}

void check(const char* what, const Tensor& x, const Config& config) {
  require(x.dim() == 4 && x.size(0) == config.z_dim, what, ": expected latents [", config.z_dim,
          ", T, h, w], got ", x.sizes());
}

}  // namespace

Tensor normalise(const Tensor& mean, const Config& config, Statistics statistics) {
  check("normalise", mean, config);
  return ((mean.to(dtype_of(statistics)) - column(config.latents_mean, mean, statistics)) *
          inverse_std(config, mean, statistics))
      .to(at::kFloat);
}

Tensor denormalise(const Tensor& latents, const Config& config, Statistics statistics) {
  check("denormalise", latents, config);
  return (latents.to(dtype_of(statistics)) / inverse_std(config, latents, statistics) +
          column(config.latents_mean, latents, statistics))
      .to(at::kFloat);
}

}  // namespace orrery::wan_vae
