// Source: nvidia-cosmos/cosmos-transfer2.5 @ 2ff49d0, VIDEO_RES_SIZE_INFO and detect_aspect_ratio.
#include "orrery/media/model_size.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/text.h"

namespace orrery::media {
namespace {

constexpr std::array<double, 5> kAspects = {16.0 / 9, 4.0 / 3, 1, 3.0 / 4, 9.0 / 16};  // width / height

struct Resolution {
  std::string_view name;
  std::array<Size, kAspects.size()> sizes;
};

constexpr std::array<Resolution, 9> kResolutions = {{
    {"720", {{{704, 1280}, {704, 960}, {960, 960}, {960, 704}, {1280, 704}}}},
    {"480", {{{432, 768}, {480, 640}, {480, 480}, {640, 480}, {768, 432}}}},
    {"480p", {{{480, 832}, {480, 640}, {640, 640}, {640, 480}, {832, 480}}}},
    {"720p", {{{720, 1280}, {720, 960}, {960, 960}, {960, 720}, {1280, 720}}}},
    {"720robocasa", {{{720, 1280}, {720, 960}, {720, 720}, {960, 720}, {1280, 720}}}},
    {"512", {{{384, 640}, {512, 640}, {512, 512}, {640, 512}, {640, 384}}}},
    {"256", {{{192, 320}, {256, 320}, {256, 256}, {320, 256}, {320, 192}}}},
    {"1024", {{{768, 1280}, {1024, 1280}, {1024, 1024}, {1280, 1024}, {1280, 768}}}},
    {"1080", {{{1056, 1920}, {1056, 1440}, {1024, 1024}, {1440, 1056}, {1920, 1056}}}},
}};

}  // namespace

Size model_size(std::string_view resolution, int64_t height, int64_t width) {
  const auto found = std::ranges::find(kResolutions, resolution, &Resolution::name);
  if (found == kResolutions.end()) {
    std::vector<std::string> known;
    for (const Resolution& r : kResolutions) known.emplace_back(r.name);
    fail(ErrorKind::kRequest, "expected the resolution to be one of ", join(known), "; found \"", resolution,
         "\"");
  }
  require(height > 0 && width > 0, "expected a clip with pixels, got ", height, " × ", width);
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  const auto nearest =
      std::ranges::min_element(kAspects, {}, [&](double a) { return (a - aspect) * (a - aspect); });
  return found->sizes[static_cast<size_t>(nearest - kAspects.begin())];
}

void require_model_size(std::string_view what, std::string_view resolution, int64_t height, int64_t width,
                        Size expected) {
  const Size found = model_size(resolution, height, width);
  require(found == expected, what, " is ", width, " × ", height, ", which resolution ", resolution,
          " stretches to ", found.width, " × ", found.height, "; expected the input's aspect, which gives ",
          expected.width, " × ", expected.height);
}

}  // namespace orrery::media
