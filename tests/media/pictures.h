#pragma once
// A picture with what photographs have: slow gradients, texture, hard borders, noise.
#include <algorithm>
#include <cmath>
#include <random>

#include "orrery/media/frames.h"

namespace orrery::media::testing {

/// Each frame moves the shapes by two pixels; noise is new in every frame.
inline Frames photograph(int64_t count, int64_t height, int64_t width, double noise = 6) {
  Frames out{count, height, width, {}};
  std::mt19937 generator(2025);
  std::normal_distribution<double> grain(0, noise);
  for (int64_t f = 0; f < count; ++f)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const double u = static_cast<double>(x) / static_cast<double>(width),
                     v = static_cast<double>(y) / static_cast<double>(height);
        const auto moved = static_cast<double>(x - 2 * f);
        double rgb[3] = {90 + 120 * u, 60 + 150 * v, 200 - 100 * u * v};  // sky
        if (v > 0.6)                                                      // grass
          for (int c = 0; c < 3; ++c) rgb[c] = 70 + 30 * c + 25 * std::sin(moved * 0.9) * std::cos(v * 80);
        const double radius = std::hypot(moved - 0.3 * static_cast<double>(width),
                                         static_cast<double>(y) - 0.4 * static_cast<double>(height));
        if (radius < 0.2 * static_cast<double>(height)) rgb[0] = 220, rgb[1] = 40 + radius, rgb[2] = 30;
        if (moved > 0.6 * static_cast<double>(width) && moved < 0.8 * static_cast<double>(width) && v > 0.2)
          rgb[0] = rgb[1] = 30, rgb[2] = 90;
        for (const double level : rgb)
          out.rgb.push_back(static_cast<uint8_t>(std::clamp(level + grain(generator), 0., 255.)));
      }
  return out;
}

}  // namespace orrery::media::testing
