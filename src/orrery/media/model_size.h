#pragma once
#include <cstdint>
#include <string_view>

namespace orrery::media {

struct Size {
  int64_t height = 0, width = 0;
  bool operator==(const Size&) const = default;
};

/// The size at which Cosmos-Transfer works on a clip (spec cosmos-transfer2.5 §1.2): that of `resolution`
/// ("720", "480p", …) for the aspect, of five, that is nearest to the clip's. Clips are stretched to it, and
/// both sides are multiples of 16. Errors of kind request: an unknown resolution, which lists the known ones,
/// or a clip without pixels.
Size model_size(std::string_view resolution, int64_t height, int64_t width);

/// Every file of a request takes the size of its own aspect; this refuses one (`what`, such as "the control
/// depth") whose size is not that of the input. Errors of kind request, and those of model_size.
void require_model_size(std::string_view what, std::string_view resolution, int64_t height, int64_t width,
                        Size expected);

}  // namespace orrery::media
