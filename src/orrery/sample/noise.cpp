// Source: numpy 1.26, numpy/random/src/legacy/legacy-distributions.c (legacy_gauss) and mt19937.c; spec
// cosmos-predict2.5 §5.6.
#include "orrery/sample/noise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <random>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

/// numpy's legacy normal numbers. std::mt19937 is the same generator, seeded in the same way.
class LegacyNormal {
 public:
  explicit LegacyNormal(uint32_t seed) : bits_(seed) {}

  double next() {
    if (has_kept_) {
      has_kept_ = false;
      return kept_;
    }
    double x1 = 0, x2 = 0, r2 = 0;
    do {  // Marsaglia's polar method
      x1 = 2 * uniform() - 1;
      x2 = 2 * uniform() - 1;
      r2 = x1 * x1 + x2 * x2;
    } while (r2 >= 1 || r2 == 0);
    const double f = std::sqrt(-2 * std::log(r2) / r2);
    kept_ = f * x1;
    has_kept_ = true;
    return f * x2;
  }

 private:
  /// [0, 1) with 53 bits, from two outputs.
  double uniform() {
    const uint32_t high = static_cast<uint32_t>(bits_()) >> 5, low = static_cast<uint32_t>(bits_()) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  std::mt19937 bits_;
  double kept_ = 0;
  bool has_kept_ = false;
};

}  // namespace

Tensor numpy_noise(const Shape& shape, int64_t seed) {
  require(seed >= 0 && seed < int64_t{1} << 32, "expected a seed from 0 to 4294967295, got ", seed);
  Tensor noise = at::empty(shape, at::kFloat);
  LegacyNormal normal(static_cast<uint32_t>(seed));
  float* values = noise.mutable_data_ptr<float>();
  for (int64_t i = 0; i < noise.numel(); ++i) values[i] = static_cast<float>(normal.next());
  return noise;
}

at::Generator torch_generator(int64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
}

Tensor torch_noise(const Shape& shape, at::Generator generator, at::ScalarType dtype) {
  return at::randn(shape, std::move(generator), dtype);
}

}  // namespace orrery::sample
