// What Cosmos-Transfer2.5 asks of a request (spec cosmos-transfer2.5 §2.5, §4.1, §6.3, §11).
#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/checks.h"
#include "orrery/config/validate.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

constexpr int64_t kLongestInput = 5000;  // frames, as the reference
constexpr int64_t kLongestOverlap = 2;
// The reference computes these two; depth and segmentation need networks of their own.
constexpr std::array<std::string_view, 2> kComputable = {"edge", "vis"};

/// Fields of a control that is not asked for would be without effect.
void check_absent(const Request& r) {
  const auto check = [](const char* control, const auto& source, const auto&... others) {
    require(source || !(is_set(others) || ...), control, ": a weight, mask or preset is given, but not --",
            control, "; expected a file",
            control == kControls[0] || control == kControls[1] ? " or auto" : "");
  };
  check("edge", r.edge, r.edge_weight, r.edge_mask, r.edge_preset);
  check("vis", r.vis, r.vis_weight, r.vis_mask, r.vis_preset);
  check("depth", r.depth, r.depth_weight, r.depth_mask);
  check("seg", r.seg, r.seg_weight, r.seg_mask);
}

void check_control(const ControlRequest& control, const Limits& limits) {
  const auto& all = limits.controls;
  require(limits.any_model || all.empty() || std::find(all.begin(), all.end(), control.name) != all.end(),
          control.name, ": this model is controlled by ", join(all), " only");
  const bool computable =
      std::find(kComputable.begin(), kComputable.end(), control.name) != kComputable.end();
  require(control.source != kComputed || computable, control.name, ": expected a file (--", control.name,
          " PATH); orrery computes edge and vis only");
  require(control.source == kComputed || !control.preset, control.name,
          "_preset: for a control that is computed, found the file ", control.source);
  require(control.weights.size() < 2 || !control.mask, control.name,
          "_weight: expected one number beside a mask, found ", control.weights.size());
  for (const double w : control.weights) {
    // Per control block, diffusers takes any weight.
    const double most = control.weights.size() == 1 ? 1 : 100;
    require(w >= 0 && w <= most, control.name, "_weight: expected a number from 0 to ", most, ", found ", w);
  }
}

void check_chunks(const Request& r) {
  if (r.chunk_size)
    require(*r.chunk_size >= 1 && (*r.chunk_size - 1) % 4 == 0 && *r.chunk_size <= kLongestInput,
            "chunk_size: expected 4k+1 (1, 5, 9 …) frames, found ", *r.chunk_size, " (the model knows 93)");
  check_range(r.chunk_overlap, "chunk_overlap", 0, kLongestOverlap);
  if (r.chunk_size && r.chunk_overlap)
    require(*r.chunk_size == 1 || *r.chunk_overlap < *r.chunk_size,
            "chunk_overlap: expected fewer frames than chunk_size ", *r.chunk_size, ", found ",
            *r.chunk_overlap);
  check_range(r.max_frames, "max_frames", 1, INT32_MAX);
  check_range(r.num_frames, "num_frames", 1, kLongestInput);
}

void check_style(const Request& r) {
  check_range(r.context_frame_index, "context_frame_index", 1, kLongestInput);
  require(!r.context_frame_index || !r.image_context_path,
          "context_frame_index and image_context_path: give one of them");
  require(!r.vis || !(r.context_frame_index || r.image_context_path),
          "vis: a blurred video has the input's style; expected no context_frame_index and no "
          "image_context_path beside it");
}

void check_guided(const Request& r) {
  check_range(r.guided_generation_step_threshold, "guided_generation_step_threshold", 0, 1000);
  require(r.guided_generation_mask || r.guided_generation_foreground_labels.empty(),
          "guided_generation_foreground_labels: expected a guided_generation_mask of labels (.npz)");
}

}  // namespace

void check_controls(const Request& r, const Limits& limits) {
  check_absent(r);
  const auto controls = controls_of(r);
  const bool known =
      std::find(limits.modes.begin(), limits.modes.end(), Mode::kTransfer) != limits.modes.end();
  const bool transfer = known && mode_of(r) == Mode::kTransfer;
  require(transfer || controls.empty(), controls.empty() ? "" : controls[0].name,
          ": this model takes no control signals (Cosmos-Transfer2.5 does)");
  require(transfer || !r.resolution,
          "resolution: expected \"height,width\" such as \"704,1280\", or none, found ",
          in_quotes(r.resolution.value_or("")));
  if (!transfer) return;
  require(!controls.empty(), "transfer: expected a control, one or more of ",
          join(std::vector<std::string>(kControls.begin(), kControls.end())), " (--edge auto, --depth PATH)");
  require(r.video.has_value() != (r.images.size() == 1), "transfer: expected one input, --video or --image");
  for (const auto& control : controls) check_control(control, limits);
  require(std::any_of(controls.begin(), controls.end(),
                      [](const ControlRequest& c) {
                        return c.weights.empty() || std::any_of(c.weights.begin(), c.weights.end(),
                                                                [](double w) { return w > 0; });
                      }),
          "transfer: all weights are 0; expected a control with a weight");
  require(r.width.has_value() == r.height.has_value(), "width and height: give both, or --resolution");
  check_chunks(r);
  check_style(r);
  check_guided(r);
}

}  // namespace orrery::config
