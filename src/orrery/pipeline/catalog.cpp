#include "orrery/pipeline/catalog.h"

#include <algorithm>
#include <array>

#include "orrery/base/error.h"
#include "orrery/pipeline/predict.h"
#include "orrery/pipeline/qwen_image.h"
#include "orrery/pipeline/transfer.h"

namespace orrery::pipeline {
namespace {

// The one list to which a new family is added (docs/adding-a-model.md).
constexpr std::array kFamilies = {
    Family{"Cosmos-Predict2.5", "Cosmos2_5_PredictBasePipeline", open_predict},
    Family{"Cosmos-Transfer2.5", "Cosmos2_5_TransferPipeline", open_transfer},
    Family{"Qwen-Image", "QwenImagePipeline", open_qwen_image},
    Family{"Qwen-Image-Edit", "QwenImageEditPipeline", open_qwen_image},
    Family{"Qwen-Image-Edit-Plus", "QwenImageEditPlusPipeline", open_qwen_image},
};

}  // namespace

const Family& family_of(const std::string& class_name) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const Family& f) { return f.class_name == class_name; });
  if (found != kFamilies.end()) return *found;
  std::string known;
  for (const Family& f : kFamilies)
    known += concat(known.empty() ? "" : ", ", f.name, " (", f.class_name, ")");
  fail(ErrorKind::kUnsupported, "model_index.json names ", class_name, "; orrery runs ", known);
}

std::unique_ptr<Pipeline> open(const config::Settings& settings, at::ScalarType dtype) {
  return family_of(layout_of(settings).class_name).open(settings, dtype);
}

}  // namespace orrery::pipeline
