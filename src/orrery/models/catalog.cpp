#include "orrery/models/catalog.h"

#include <algorithm>
#include <array>

#include "orrery/base/error.h"

namespace orrery {
namespace {

// The one list to which a new family is added (docs/adding-a-model.md).
constexpr std::array kFamilies = {
    Family{"Cosmos-Predict2.5", "Cosmos2_5_PredictBasePipeline"},
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

}  // namespace orrery
