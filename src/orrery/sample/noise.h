#pragma once
#include <ATen/core/Generator.h>

#include <cstdint>

#include "orrery/base/tensor.h"

namespace orrery::sample {

/// numpy.random.RandomState(seed).standard_normal(shape) as float32: the noise of the official Cosmos code
/// (spec cosmos-predict2.5 §5.6). Error of kind request unless 0 ≤ seed < 2³², as in numpy.
Tensor numpy_noise(const Shape& shape, int64_t seed);

/// torch.Generator("cpu").manual_seed(seed): a generator of one's own, not the process's. Any seed.
at::Generator torch_generator(int64_t seed);

/// torch.randn(shape, generator=generator, dtype=dtype) on the CPU: the noise of diffusers. The generator
/// moves on.
Tensor torch_noise(const Shape& shape, at::Generator generator, at::ScalarType dtype = at::kFloat);

}  // namespace orrery::sample
