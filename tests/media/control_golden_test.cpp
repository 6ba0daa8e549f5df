// What OpenCV 5 and torchvision make of the same pictures.
#include <ATen/ops/from_blob.h>

#include <cstdlib>
#include <string_view>

#include "orrery/base/error.h"
#include "orrery/media/blur.h"
#include "orrery/media/edge.h"
#include "orrery/media/preset.h"
#include "orrery/media/stretch_opencv.h"
#include "tests/media/golden_pictures.h"
#include "tests/support/golden.h"

namespace orrery::media {
namespace {

using testing::Json;
using testing::picture;
using testing::tensor;
using testing::Tensors;

/// Calls check(tensors of the folder, name) for each case whose name starts so; at least one must exist,
/// unless the goldens are others than the project's own.
template <class Check>
void for_cases(std::string_view prefix, Check check) {
  int found = 0;
  for (const char* topic : {"transfer", "images"})
    for (const auto& folder : testing::golden_folders(topic)) {
      const Json description = testing::read_json(folder / "case.json");
      const Tensors tensors = testing::read_tensors(folder / "golden.safetensors");
      for (const Json& entry : description["cases"]) {
        const auto name = entry["name"].get<std::string>();
        if (!name.starts_with(prefix)) continue;
        SCOPED_TRACE(folder.string() + " " + name);
        ++found;
        check(tensors, name);
      }
    }
  EXPECT_TRUE(found > 0 || std::getenv("ORRERY_GOLDEN"));
}

TEST(ControlGolden, OpencvResizes) {
  for_cases("opencv_", [](const Tensors& tensors, const std::string& name) {
    const Frames input = picture(tensors.at(name + "/input"));
    const std::pair<const char*, OpencvFilter> filters[] = {{"nearest", OpencvFilter::kNearest},
                                                            {"linear", OpencvFilter::kLinear},
                                                            {"area", OpencvFilter::kArea},
                                                            {"lanczos4", OpencvFilter::kLanczos4}};
    for (const auto& [key, filter] : filters) {
      const Tensor expected = tensors.at(concat(name, "/", key));
      EXPECT_EQ(testing::max_abs(tensor(stretch_opencv(input, expected.size(0), expected.size(1), filter)),
                                 expected),
                0)
          << key;
    }
  });
}

TEST(ControlGolden, Edges) {
  for_cases("canny", [](const Tensors& tensors, const std::string& name) {
    for (const char* copy : {"", "_smooth"}) {
      const Frames input = picture(tensors.at(concat(name, "/input", copy)));
      for (const auto preset : kPresets) {
        const Tensor expected = tensors.at(concat(name, "/", preset, copy)).unsqueeze(2).expand({-1, -1, 3});
        EXPECT_EQ(testing::max_abs(tensor(edges(input, edge_preset(preset))), expected), 0) << preset << copy;
      }
    }
  });
}

TEST(ControlGolden, Blur) {
  for_cases("blur_", [](const Tensors& tensors, const std::string& name) {
    const Tensor expected = tensors.at(name + "/output");
    const Frames input = picture(tensors.at("blur_very_low/input"));
    const auto preset = std::string_view(name).substr(std::string_view("blur_").size());
    EXPECT_EQ(testing::max_abs(tensor(blur(input, blur_preset(preset))), expected), 0);
  });
}

}  // namespace
}  // namespace orrery::media
