#pragma once
// Clips for the tests of media, and FFmpeg's own programs as a second opinion.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "orrery/media/frames.h"
#include "orrery/media/stream.h"

namespace orrery::media::testing {

/// Smooth colours that move.
inline Frames waves(int64_t count, int64_t height, int64_t width) {
  Frames out{count, height, width, {}};
  for (int64_t f = 0; f < count; ++f)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int c = 0; c < 3; ++c) {
          const double u = static_cast<double>(x + 2 * f) / (17 + 4 * c),
                       v = static_cast<double>(y - f) / (23 - 3 * c);
          out.rgb.push_back(static_cast<uint8_t>(128 + 100 * std::sin(u + c) * std::cos(v)));
        }
  return out;
}

inline Frames flat(int64_t count, int64_t height, int64_t width, uint8_t r, uint8_t g, uint8_t b) {
  Frames out{count, height, width, {}};
  for (int64_t i = 0; i < count * height * width; ++i) out.rgb.insert(out.rgb.end(), {r, g, b});
  return out;
}

inline int max_levels(const Frames& a, const Frames& b) {
  if (a.rgb.size() != b.rgb.size()) return 256;
  int most = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i) most = std::max(most, std::abs(int{a.rgb[i]} - int{b.rgb[i]}));
  return most;
}

/// Peak signal-to-noise ratio in dB.
inline double psnr(const Frames& a, const Frames& b) {
  if (a.rgb.size() != b.rgb.size()) return 0;
  double sum = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i) sum += std::pow(double(a.rgb[i]) - double(b.rgb[i]), 2);
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.rgb.size()) / sum);
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline bool run(const std::string& command) { return std::system(command.c_str()) == 0; }

inline bool has_ffmpeg() {
  return run("ffmpeg -version > /dev/null 2>&1 && ffprobe -version > /dev/null 2>&1");
}

inline bool ffmpeg(const std::string& arguments) { return run("ffmpeg -v error -nostdin -y " + arguments); }

}  // namespace orrery::media::testing
