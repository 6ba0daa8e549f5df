#include "orrery/config/controls.h"

namespace orrery::config {

std::vector<ControlRequest> controls_of(const ControlFields& r) {
  std::vector<ControlRequest> controls;
  const auto add = [&](std::string_view name, const auto& source, const auto& weights, const auto& mask,
                       const std::optional<std::string>& preset) {
    if (source) controls.push_back({std::string(name), *source, weights, mask, preset});
  };
  add(kControls[0], r.edge, r.edge_weight, r.edge_mask, r.edge_preset);
  add(kControls[1], r.vis, r.vis_weight, r.vis_mask, r.vis_preset);
  add(kControls[2], r.depth, r.depth_weight, r.depth_mask, {});
  add(kControls[3], r.seg, r.seg_weight, r.seg_mask, {});
  return controls;
}

}  // namespace orrery::config
