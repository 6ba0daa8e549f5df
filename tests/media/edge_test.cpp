#include "orrery/media/edge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "orrery/media/preset.h"
#include "tests/media/clips.h"
#include "tests/media/pictures.h"
#include "tests/support/expect_error.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;
using testing::flat;
using testing::photograph;

/// The definition (spec cosmos-transfer2.5 §3.2), pixel by pixel.
Frames canny(const Frames& in, int low, int high) {
  const int64_t h = in.height, w = in.width;
  const auto pixel = [&](int64_t y, int64_t x, int c) {
    y = std::clamp<int64_t>(y, 0, h - 1), x = std::clamp<int64_t>(x, 0, w - 1);
    return int{in.rgb[static_cast<size_t>((y * w + x) * 3 + c)]};
  };
  std::vector<int> dx(static_cast<size_t>(h * w)), dy(dx), length(dx);
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x)
      for (int c = 0; c < 3; ++c) {
        const auto p = [&](int i, int j) { return pixel(y + i, x + j, c); };
        const int gx = p(-1, 1) + 2 * p(0, 1) + p(1, 1) - p(-1, -1) - 2 * p(0, -1) - p(1, -1);
        const int gy = p(1, -1) + 2 * p(1, 0) + p(1, 1) - p(-1, -1) - 2 * p(-1, 0) - p(-1, 1);
        const auto i = static_cast<size_t>(y * w + x);
        if (const int sum = std::abs(gx) + std::abs(gy); c == 0 || sum > length[i])
          dx[i] = gx, dy[i] = gy, length[i] = sum;
      }
  const auto m = [&](int64_t y, int64_t x) {
    return y < 0 || x < 0 || y >= h || x >= w ? 0 : length[static_cast<size_t>(y * w + x)];
  };
  const auto ridge = [&](int64_t y, int64_t x) {
    const auto i = static_cast<size_t>(y * w + x);
    const int64_t ax = std::abs(dx[i]), ay = int64_t{std::abs(dy[i])} << 15, t22 = ax * 13573;  // tan 22.5°
    const int here = length[i];
    if (ay < t22) return here > m(y, x - 1) && here >= m(y, x + 1);
    if (ay > t22 + (ax << 16)) return here > m(y - 1, x) && here >= m(y + 1, x);
    const int64_t s = (dx[i] ^ dy[i]) < 0 ? -1 : 1;
    return here > m(y - 1, x - s) && here > m(y + 1, x + s);
  };
  std::vector<char> state(static_cast<size_t>(h * w), 0);  // 1 candidate, 2 edge
  std::deque<std::pair<int64_t, int64_t>> todo;
  for (int64_t y = 0; y < h; ++y)
    for (int64_t x = 0; x < w; ++x)
      if (m(y, x) > low && ridge(y, x)) {
        auto& s = state[static_cast<size_t>(y * w + x)] = m(y, x) > high ? 2 : 1;
        if (s == 2) todo.emplace_back(y, x);
      }
  for (; !todo.empty(); todo.pop_front())
    for (int64_t y = todo.front().first - 1; y <= todo.front().first + 1; ++y)
      for (int64_t x = todo.front().second - 1; x <= todo.front().second + 1; ++x)
        if (y >= 0 && x >= 0 && y < h && x < w && state[static_cast<size_t>(y * w + x)] == 1) {
          state[static_cast<size_t>(y * w + x)] = 2;
          todo.emplace_back(y, x);
        }
  Frames out{1, h, w, {}};
  for (const char s : state) out.rgb.insert(out.rgb.end(), 3, s == 2 ? 255 : 0);
  return out;
}

int64_t white(const Frames& frames) { return std::ranges::count(frames.rgb, 255) / 3; }

TEST(Edge, AreCannysByDefinition) {
  const std::pair<int64_t, int64_t> sizes[] = {{96, 128}, {61, 47}, {3, 200}, {1, 1}};
  for (const auto& [height, width] : sizes)
    for (const auto preset : kPresets)
      for (const double noise : {0., 12.}) {
        const auto [low, high] = edge_preset(preset);
        const Frames picture = photograph(1, height, width, noise);
        EXPECT_EQ(edges(picture, {low, high}), canny(picture, low, high))
            << height << " × " << width << ", " << preset;
      }
}

TEST(Edge, PresetsFallInNumber) {
  EXPECT_EQ(edge_preset("medium"), (EdgeThresholds{100, 200}));
  EXPECT_EQ(edge_preset("very-low"), (EdgeThresholds{20, 50}));
  EXPECT_EQ(EdgeThresholds{}, edge_preset("medium"));
  const Frames picture = photograph(1, 96, 128, 12);
  int64_t before = picture.height * picture.width;
  for (const auto preset : kPresets) {
    const int64_t now = white(edges(picture, edge_preset(preset)));
    EXPECT_LT(now, before) << preset;
    EXPECT_GT(now, 0) << preset;
    before = now;
  }
}

TEST(Edge, FramesDoNotMix) {
  const Frames clip = photograph(3, 40, 56);
  const Frames all = edges(clip, {});
  EXPECT_NE(slice(all, 0, 1), slice(all, 2, 1));
  for (int64_t f = 0; f < 3; ++f) EXPECT_EQ(slice(all, f, 1), edges(slice(clip, f, 1), {}));
}

TEST(Edge, FlatPicturesHaveNone) { EXPECT_EQ(edges(flat(2, 9, 7, 200, 10, 90), {}), flat(2, 9, 7, 0, 0, 0)); }

TEST(Edge, Refusals) {
  expect_error(
      ErrorKind::kRequest,
      "expected the preset of the edge threshold to be one of very_low, low, medium, high, very_high; "
      "found \"mediun\" (did you mean medium?)",
      [] { edge_preset("mediun"); });
  expect_error(ErrorKind::kRequest, "found \"\"", [] { edge_preset(""); });
  expect_error(ErrorKind::kRequest, "edges: expected frames, got a clip of size 0 × 0 × 0",
               [] { edges({}, {}); });
  expect_error(ErrorKind::kRequest, "0 ≤ low ≤ high, got 200 and 100", [] {
    edges(flat(1, 4, 4, 0, 0, 0), {200, 100});
  });
  expect_error(ErrorKind::kRequest, "got -1 and 100", [] { edges(flat(1, 4, 4, 0, 0, 0), {-1, 100}); });
}

}  // namespace
}  // namespace orrery::media
