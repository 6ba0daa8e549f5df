#pragma once
// Every suite of an op runs over its implementations: the definition itself and what the dispatcher chooses
// for the device.
#include <ATen/Context.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "orrery/base/tensor.h"

namespace orrery::testing {

// libtorch seeds its generator from the system; a failure should come back.
inline const bool kSeeded = (at::manual_seed(1), true);

enum class Implementation { kReference, kKernel };

inline const Implementation kImplementations[] = {Implementation::kReference, Implementation::kKernel};

/// How far a result may be from one computed in float64, relative to 1 + |result|.
inline double rounding(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? 0x1p-8 : dtype == at::kHalf ? 0x1p-11 : 2e-6;
}

inline double distance(const Tensor& got, const Tensor& expected) {
  EXPECT_EQ(got.sizes(), expected.sizes());
  const Tensor wide = expected.to(at::kDouble);
  return got.numel() ? ((got.to(at::kDouble) - wide).abs() / (wide.abs() + 1)).max().item<double>() : 0;
}

inline Tensor wide(const Tensor& t) { return t.to(at::kDouble); }

/// "KernelBFloat16_65": names of cases may hold letters, digits and underscores.
template <class... Parts>
std::string case_name(Implementation implementation, at::ScalarType dtype, const Parts&... parts) {
  std::string name = implementation == Implementation::kReference ? "Reference" : "Kernel";
  name += at::toString(dtype);
  ((name += "_" + std::to_string(parts)), ...);
  return name;
}

}  // namespace orrery::testing
