#include "orrery/config/control_objects.h"

#include <array>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/config/controls.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

using Json = nlohmann::json;

/// A field of a control object and the end of the request's field: edge + _weight.
struct Renamed {
  std::string_view name, suffix;
};
constexpr std::array<Renamed, 5> kRenamed = {{{"control_path", ""},
                                              {"control_weight", "_weight"},
                                              {"mask_path", "_mask"},
                                              {"preset_edge_threshold", "_preset"},
                                              {"preset_blur_strength", "_preset"}}};

bool has(const Json& object, const char* field) { return object.contains(field) && !object[field].is_null(); }

/// Prompts from which the reference's detector and segmenter make a control or a mask.
void check_prompts(const std::string& control, const Json& object, const std::string& where) {
  if (has(object, "mask_prompt")) {
    if (!has(object, "mask_path"))
      fail(ErrorKind::kUnsupported, where, control,
           ": mask_prompt needs a segmentation model, which orrery does not have; give mask_path");
    log::warn(where, control, ": mask_path is used, mask_prompt is not");
  }
  if (has(object, "control_prompt") && !has(object, "control_path"))
    fail(ErrorKind::kUnsupported, where, control,
         ": control_prompt needs a segmentation model, which orrery does not have; give control_path");
}

void flatten(Json& request, const std::string& control, const Json& object, const std::string& where) {
  check_prompts(control, object, where);
  request[control] = kComputed;
  for (const auto& [key, value] : object.items()) {
    const auto found = std::find_if(kRenamed.begin(), kRenamed.end(),
                                    [&, &name = key](const Renamed& r) { return r.name == name; });
    const bool prompt = key == "mask_prompt" || key == "control_prompt";
    if (found == kRenamed.end()) {
      if (!prompt) log::warn(where, control, ": ", in_quotes(key), " is ignored, as by the reference");
    } else if (!value.is_null()) {
      request[concat(control, found->suffix)] = value;
    }
  }
}

}  // namespace

Json flatten_controls(Json object, const Locate& locate) {
  if (!object.is_object()) return object;
  for (const std::string_view name : kControls) {
    const std::string control(name);
    if (!object.contains(control) || !object[control].is_object()) continue;
    const Json nested = object[control];
    flatten(object, control, nested, locate ? locate(control) : "");
  }
  for (const char* text : {"resolution", "sigma_max"})
    if (object.contains(text) && object[text].is_number()) object[text] = object[text].dump();
  return object;
}

}  // namespace orrery::config
