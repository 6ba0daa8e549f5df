#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/models/cosmos_transfer/weight_map.h"
#include "tests/support/golden.h"

namespace orrery::cosmos_transfer {
namespace {

using testing::Json;

media::Mask mask_of(const Tensor& ones) {
  const Tensor levels = (ones * 255).contiguous();
  const auto* data = levels.const_data_ptr<uint8_t>();
  return {levels.size(0), levels.size(1), levels.size(2), {data, data + levels.numel()}};
}

/// Cases with masks: pixel masks of some controls, the weights of all, the maps of all.
TEST(WeightMapGolden, MapsOnTheTokenGrid) {
  int compared = 0;
  for (const auto& folder : testing::golden_folders("transfer")) {
    const Json description = testing::read_json(folder / "case.json");
    const auto tensors = testing::read_tensors(folder / "golden.safetensors");
    for (const Json& entry : description["cases"]) {
      const auto name = entry["name"].get<std::string>();
      if (!entry.contains("weights") || name != "masked") continue;
      SCOPED_TRACE(folder.string());
      const double tolerance = description["tolerance"]["float32"]["max_abs_over_rms"];
      std::vector<std::string> kinds;
      for (const char* kind : {"edge", "vis", "depth", "seg"})
        if (entry["weights"].contains(kind)) kinds.push_back(kind);
      std::vector<media::Mask> masks(kinds.size());
      std::vector<ControlStrength> controls;
      for (size_t i = 0; i < kinds.size(); ++i) {
        const auto at = tensors.find(name + "/mask." + kinds[i]);
        if (at != tensors.end()) masks[i] = mask_of(at->second);
        controls.push_back({entry["weights"][kinds[i]], at == tensors.end() ? nullptr : &masks[i]});
      }
      const auto maps = weight_maps(controls, at::kFloat);
      ASSERT_EQ(maps.size(), kinds.size());
      for (size_t i = 0; i < kinds.size(); ++i, ++compared)
        EXPECT_LE(testing::max_abs_over_rms(maps[i], tensors.at(name + "/map." + kinds[i])), tolerance)
            << kinds[i];
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace orrery::cosmos_transfer
