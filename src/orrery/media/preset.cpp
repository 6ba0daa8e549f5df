#include "orrery/media/preset.h"

#include <algorithm>
#include <string>
#include <vector>

#include "orrery/base/error.h"
#include "orrery/base/text.h"

namespace orrery::media {

size_t preset_index(std::string_view what, std::string_view name) {
  std::string spelled(name);
  std::ranges::replace(spelled, '-', '_');
  const auto found = std::ranges::find(kPresets, spelled);
  const std::vector<std::string> known(kPresets.begin(), kPresets.end());
  require(found != kPresets.end(), "expected the preset of the ", what, " to be one of ", join(known),
          "; found \"", name, "\"", did_you_mean(name, known));
  return static_cast<size_t>(found - kPresets.begin());
}

}  // namespace orrery::media
