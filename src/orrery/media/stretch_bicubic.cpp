// Source: pytorch 2.x, ATen/native/cpu/UpSampleKernel.cpp (HelperInterpCubic with antialias,
// compute_indices_min_size_weights_aa): the filter is widened where an axis shrinks, its weights sum to 1,
// and the horizontal pass comes first.
#include "orrery/media/stretch_bicubic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "orrery/base/error.h"

namespace orrery::media {
namespace {

constexpr int64_t kChannels = 3;

/// Output i of an axis is the weighted sum of `weights.size()` inputs from `first` on.
struct Taps {
  int64_t first;
  std::vector<float> weights;
};

// To the bit: torch's kernels are compiled with fused multiply-adds, and half a pixel is a double there. With
// other weights some values, near a half, round to the neighbouring level.

/// Keys' kernel with a = −1/2.
float cubic(float x) {
  constexpr float a = -0.5f;
  x = std::abs(x);
  if (x < 1) return std::fma(std::fma(a + 2, x, -(a + 3)) * x, x, 1.f);
  return x < 2 ? std::fma(std::fma(std::fma(a, x, -5 * a), x, 8 * a), x, -4 * a) : 0;
}

std::vector<Taps> window(int64_t in, int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  const float widening = std::max(scale, 1.f), support = 2 * widening, inverse = 1 / widening;
  std::vector<Taps> taps;
  for (int64_t i = 0; i < out; ++i) {
    const float centre = scale * (static_cast<float>(i) + 0.5f);
    const int64_t lo = std::max(static_cast<int64_t>(centre - support + 0.5f), int64_t{0});
    const int64_t hi = std::min(static_cast<int64_t>(centre + support + 0.5f), in);
    Taps& row = taps.emplace_back(Taps{lo, {}});
    float sum = 0;
    for (int64_t k = lo; k < hi; ++k) {
      const double offset = static_cast<double>(static_cast<float>(k) - centre) + 0.5;
      row.weights.push_back(cubic(static_cast<float>(offset * static_cast<double>(inverse))));
      sum += row.weights.back();
    }
    for (float& w : row.weights) w /= sum;
  }
  return taps;
}

/// in: [outer, L, inner] → out: [outer, taps, inner].
template <class In>
void resample(const In* in, float* out, int64_t outer, int64_t length, int64_t inner,
              const std::vector<Taps>& taps) {
  for (int64_t o = 0; o < outer; ++o)
    for (const Taps& row : taps) {
      std::fill_n(out, inner, 0.f);
      const In* p = in + (o * length + row.first) * inner;
      for (const float w : row.weights) {
        for (int64_t c = 0; c < inner; ++c) out[c] = std::fma(static_cast<float>(p[c]), w, out[c]);
        p += inner;
      }
      out += inner;
    }
}

}  // namespace

Frames stretch_bicubic(const Frames& frames, int64_t height, int64_t width) {
  require(frames.count > 0 && frames.height > 0 && frames.width > 0,
          "resize: expected frames, got a clip of size ", frames.count, " × ", frames.height, " × ",
          frames.width);
  require(height > 0 && width > 0, "resize: expected a positive size, got ", height, " × ", width);
  const auto across = window(frames.width, width), down = window(frames.height, height);
  const int64_t row = width * kChannels;
  std::vector<float> half(static_cast<size_t>(frames.height * row)), whole(static_cast<size_t>(height * row));
  Frames out{frames.count, height, width, {}};
  out.rgb.reserve(static_cast<size_t>(out.count * out.frame_bytes()));
  for (int64_t f = 0; f < frames.count; ++f) {
    resample(frames.rgb.data() + f * frames.frame_bytes(), half.data(), frames.height, frames.width,
             kChannels, across);
    resample(half.data(), whole.data(), 1, frames.height, row, down);
    for (const float v : whole)
      out.rgb.push_back(static_cast<uint8_t>(std::nearbyint(std::clamp(v, 0.f, 255.f))));
  }
  return out;
}

}  // namespace orrery::media
