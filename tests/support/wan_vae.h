#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <cmath>

#include "orrery/models/wan_vae/wan_vae.h"

namespace orrery::testing {

/// Fills a VAE with random weights that keep activations near 1: norms around 1, convolutions scaled by their
/// fan-in.
class RandomVae final : public nn::Visitor<RandomVae> {
 public:
  void tensor(const std::string&, Tensor& t, const Shape& shape) {
    const bool norm =
        shape.size() >= 3 && shape[1] == 1 && shape.back() == 1 && shape[0] > 1 && shape.size() < 5;
    t = at::randn(shape);
    if (norm)
      t = 1 + t * 0.1;
    else if (shape.size() > 1)
      t /= std::sqrt(static_cast<double>(t[0].numel()));
    else
      t *= 0.1;
  }
};

inline wan_vae::Weights random_vae(const wan_vae::Config& config, at::ScalarType dtype = at::kFloat) {
  wan_vae::Weights weights;
  RandomVae random;
  bind(random, weights, config);
  prepare_encoder(weights, dtype);
  prepare_decoder(weights, dtype);
  return weights;
}

}  // namespace orrery::testing
