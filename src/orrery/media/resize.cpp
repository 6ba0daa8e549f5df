// Sources: torchvision's float path is ATen/native/cpu/UpSampleKernel.cpp
// (compute_indices_min_size_weights_aa) of pytorch 2.x, its 8-bit path compute_index_ranges_int16_weights
// there and UpSampleKernelAVXAntialias.h; Pillow's is src/libImaging/Resample.c. All are separable filters
// over the same window; they differ in the type of the weights and in what is rounded when.
#include "orrery/media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "orrery/base/error.h"

namespace orrery::media {
namespace {

constexpr int64_t kChannels = 3;

/// Output i of an axis is the weighted sum of the inputs from first[i] on.
template <class Weight>
struct Taps {
  std::vector<int64_t> first;
  std::vector<std::vector<Weight>> weights;
};

double filter_value(Filter filter, double x) {
  const double d = std::abs(x);
  switch (filter) {
    case Filter::kBilinear:
      return d < 1 ? 1 - d : 0;
    case Filter::kBicubic: {
      constexpr double a = -0.5;
      if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
      return d < 2 ? (((d - 5) * d + 8) * d - 4) * a : 0;
    }
    case Filter::kLanczos: {
      const auto sinc = [](double v) {
        return v == 0 ? 1 : std::sin(v * std::numbers::pi) / (v * std::numbers::pi);
      };
      return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
  }
  return 0;
}

double filter_support(Filter filter) {
  return filter == Filter::kBilinear ? 1 : filter == Filter::kBicubic ? 2 : 3;
}

/// The window of both libraries: the filter is widened when the axis shrinks, and its weights sum to 1. Real
/// is the type of every intermediate: a double where torch has a float moves some pixels by one level.
template <class Real>
Taps<Real> window(int64_t in, int64_t out, Filter filter) {
  const Real scale = static_cast<Real>(in) / static_cast<Real>(out);
  const Real widening = std::max(scale, Real{1});
  const Real support = static_cast<Real>(filter_support(filter)) * widening, inverse = Real{1} / widening;
  constexpr Real kHalf = static_cast<Real>(0.5);
  Taps<Real> taps;
  for (int64_t i = 0; i < out; ++i) {
    const Real centre = scale * (static_cast<Real>(i) + kHalf);
    const int64_t lo = std::max(static_cast<int64_t>(centre - support + kHalf), int64_t{0});
    const int64_t hi = std::min(static_cast<int64_t>(centre + support + kHalf), in);
    std::vector<Real> weights;
    Real sum = 0;
    for (int64_t k = 0; k < hi - lo; ++k) {
      const Real x = (static_cast<Real>(k + lo) - centre + kHalf) * inverse;
      weights.push_back(static_cast<Real>(filter_value(filter, x)));
      sum += weights.back();
    }
    for (Real& w : weights) w /= sum;
    taps.first.push_back(lo);
    taps.weights.push_back(std::move(weights));
  }
  return taps;
}

/// A window in integers: weights are multiples of 2^−bits.
struct FixedTaps {
  Taps<int32_t> taps;
  int bits = 0;
};

FixedTaps fixed(const Taps<double>& exact, int bits) {
  FixedTaps out{{exact.first, {}}, bits};
  for (const auto& row : exact.weights) {
    auto& weights = out.taps.weights.emplace_back();
    for (const double w : row)
      weights.push_back(static_cast<int32_t>(w * (1 << bits) + (w < 0 ? -0.5 : 0.5)));
  }
  return out;
}

constexpr int kPilBits = 22;  // PRECISION_BITS: 32 − 8 − 2

FixedTaps pil_window(int64_t in, int64_t out, Filter filter) {
  return fixed(window<double>(in, out, filter), kPilBits);
}

/// As many bits as the largest weight leaves in 16.
FixedTaps torch_window(int64_t in, int64_t out, Filter filter) {
  constexpr int kMostBits = 22, kLimit = 1 << 15;
  const auto exact = window<double>(in, out, filter);
  double largest = 0;
  for (const auto& row : exact.weights)
    for (const double w : row) largest = std::max(largest, w);
  int bits = 0;
  while (bits < kMostBits && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < kLimit) ++bits;
  return fixed(exact, bits);
}

// torch's kernels are compiled with fused multiply-add; without it about one pixel in ten thousand lands on
// the other side of a tie.
float multiply_add(float x, float weight, float sum) { return std::fma(x, weight, sum); }
int32_t multiply_add(int32_t x, int32_t weight, int32_t sum) { return x * weight + sum; }

/// in: [outer, L, inner] → out: [outer, taps, inner].
template <class In, class Out, class Weight, class Finish>
void resample(const In* in, Out* out, int64_t outer, int64_t length, int64_t inner, const Taps<Weight>& taps,
              Finish finish) {
  for (int64_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < taps.first.size(); ++i) {
      const In* row = in + (o * length + taps.first[i]) * inner;
      for (int64_t c = 0; c < inner; ++c) {
        Weight sum = 0;
        const In* p = row + c;
        for (const Weight w : taps.weights[i])
          sum = multiply_add(static_cast<Weight>(*p), w, sum), p += inner;
        *out++ = finish(sum);
      }
    }
}

void check(const Frames& frames, int64_t height, int64_t width) {
  require(frames.count > 0 && frames.height > 0 && frames.width > 0,
          "resize: expected frames, got a clip of size ", frames.count, " × ", frames.height, " × ",
          frames.width);
  require(height > 0 && width > 0, "resize: expected a positive size, got ", height, " × ", width);
}

Frames blank(int64_t count, int64_t height, int64_t width) {
  Frames out{count, height, width, {}};
  out.rgb.resize(static_cast<size_t>(count * out.frame_bytes()));
  return out;
}

Frames stretch_torchvision(const Frames& frames, int64_t height, int64_t width) {
  const auto across = window<float>(frames.width, width, Filter::kBilinear);
  const auto down = window<float>(frames.height, height, Filter::kBilinear);
  Frames out = blank(frames.count, height, width);
  std::vector<float> half(static_cast<size_t>(frames.height * width * kChannels));
  for (int64_t f = 0; f < frames.count; ++f) {
    resample(frames.rgb.data() + f * frames.frame_bytes(), half.data(), frames.height, frames.width,
             kChannels, across, [](float v) { return v; });
    resample(half.data(), out.rgb.data() + f * out.frame_bytes(), 1, frames.height, width * kChannels, down,
             [](float v) { return static_cast<uint8_t>(std::nearbyint(std::clamp(v, 0.f, 255.f))); });
  }
  return out;
}

/// Horizontal pass, then vertical, 8 bits in between; an axis that keeps its size is left out.
Frames stretch_fixed(const Frames& frames, int64_t height, int64_t width, Filter filter,
                     FixedTaps (*window_of)(int64_t in, int64_t out, Filter filter)) {
  check(frames, height, width);
  const auto pass = [](const Frames& from, Frames to, int64_t outer, int64_t length, int64_t inner,
                       const FixedTaps& window) {
    resample(from.rgb.data(), to.rgb.data(), outer, length, inner, window.taps,
             [bits = window.bits](int32_t sum) {
               return static_cast<uint8_t>(std::clamp((sum + (1 << (bits - 1))) >> bits, 0, 255));
             });
    return to;
  };
  const Frames* from = &frames;
  Frames half;
  if (width != frames.width) {
    half = pass(frames, blank(frames.count, frames.height, width), frames.count * frames.height, frames.width,
                kChannels, window_of(frames.width, width, filter));
    from = &half;
  }
  if (height == frames.height) return *from;
  return pass(*from, blank(frames.count, height, width), frames.count, frames.height, width * kChannels,
              window_of(frames.height, height, filter));
}

Frames crop(const Frames& frames, int64_t top, int64_t left, int64_t height, int64_t width) {
  Frames out = blank(frames.count, height, width);
  uint8_t* to = out.rgb.data();
  for (int64_t f = 0; f < frames.count; ++f)
    for (int64_t y = 0; y < height; ++y, to += width * kChannels)
      std::memcpy(
          to, frames.rgb.data() + f * frames.frame_bytes() + ((top + y) * frames.width + left) * kChannels,
          static_cast<size_t>(width * kChannels));
  return out;
}

/// out[i] is in[rows[y], columns[x]].
Frames pick(const Frames& frames, const std::vector<int64_t>& rows, const std::vector<int64_t>& columns) {
  Frames out = blank(frames.count, static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns.size()));
  uint8_t* to = out.rgb.data();
  for (int64_t f = 0; f < frames.count; ++f)
    for (const int64_t y : rows)
      for (const int64_t x : columns) {
        std::memcpy(to, frames.rgb.data() + f * frames.frame_bytes() + (y * frames.width + x) * kChannels,
                    kChannels);
        to += kChannels;
      }
  return out;
}

std::vector<int64_t> nearest_indices(int64_t in, int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < out; ++i)
    indices.push_back(std::min(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1));
  return indices;
}

}  // namespace

Frames cover_crop(const Frames& frames, int64_t height, int64_t width) {
  check(frames, height, width);
  const auto h = static_cast<double>(frames.height), w = static_cast<double>(frames.width);
  const double ratio = std::max(static_cast<double>(width) / w, static_cast<double>(height) / h);
  const auto covered_height = static_cast<int64_t>(std::ceil(ratio * h));
  const auto covered_width = static_cast<int64_t>(std::ceil(ratio * w));
  // Half to even, as Python's round.
  const auto margin = [](int64_t size, int64_t target) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(size - target) / 2));
  };
  const int64_t top = margin(covered_height, height), left = margin(covered_width, width);
  if (covered_height == frames.height && covered_width == frames.width)
    return crop(frames, top, left, height, width);
  return crop(stretch_torchvision(frames, covered_height, covered_width), top, left, height, width);
}

Frames stretch_pil(const Frames& frames, int64_t height, int64_t width, Filter filter) {
  return stretch_fixed(frames, height, width, filter, pil_window);
}

Frames stretch_torch(const Frames& frames, int64_t height, int64_t width, Filter filter) {
  return stretch_fixed(frames, height, width, filter, torch_window);
}

Frames stretch_nearest(const Frames& frames, int64_t height, int64_t width) {
  check(frames, height, width);
  return pick(frames, nearest_indices(frames.height, height), nearest_indices(frames.width, width));
}

Frames enlarge_nearest(const Frames& frames, int64_t factor) {
  check(frames, factor, factor);
  std::vector<int64_t> rows, columns;
  for (int64_t y = 0; y < frames.height * factor; ++y) rows.push_back(y / factor);
  for (int64_t x = 0; x < frames.width * factor; ++x) columns.push_back(x / factor);
  return pick(frames, rows, columns);
}

Frames contact_sheet(std::span<const Frames> clips, std::span<const int64_t> indices, int64_t factor) {
  require(!clips.empty() && !indices.empty(), "contact_sheet: expected clips and frame indices, got ",
          clips.size(), " clips and ", indices.size(), " indices");
  const int64_t height = clips.front().height, width = clips.front().width;
  const auto columns = static_cast<int64_t>(indices.size());
  Frames sheet = blank(1, height * static_cast<int64_t>(clips.size()), width * columns);
  uint8_t* to = sheet.rgb.data();
  for (const Frames& clip : clips) {
    require(clip.height == height && clip.width == width, "contact_sheet: expected clips of one size, got ",
            height, " × ", width, " and ", clip.height, " × ", clip.width);
    for (const int64_t i : indices)
      require(i >= 0 && i < clip.count, "contact_sheet: expected frame indices below ", clip.count, ", got ",
              i);
    for (int64_t y = 0; y < height; ++y)
      for (const int64_t i : indices) {
        std::memcpy(to, clip.rgb.data() + i * clip.frame_bytes() + y * width * kChannels,
                    static_cast<size_t>(width * kChannels));
        to += width * kChannels;
      }
  }
  return enlarge_nearest(sheet, factor);
}

}  // namespace orrery::media
