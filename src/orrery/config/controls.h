#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/fields.h"

// What a request to Cosmos-Transfer2.5 says beside the fields of every request (spec cosmos-transfer2.5
// §6.3).
namespace orrery::config {

/// The control signals in the order in which their hints are added (§2.6); "vis" is a blurred video.
inline constexpr std::array<std::string_view, 4> kControls = {"edge", "vis", "depth", "seg"};

/// Instead of a file: compute the control from the input.
inline constexpr std::string_view kComputed = "auto";

/// Part of Request, which is one list of fields to files and flags.
struct ControlFields {
  std::optional<std::string> edge, vis, depth, seg;
  std::vector<double> edge_weight, vis_weight, depth_weight, seg_weight;
  std::optional<std::string> edge_mask, vis_mask, depth_mask, seg_mask;
  std::optional<std::string> edge_preset, vis_preset;
  std::optional<bool> normalize_control_weights;
  std::optional<int64_t> max_frames, context_frame_index;
  std::optional<std::string> image_context_path, guided_generation_mask;
  std::optional<int64_t> guided_generation_step_threshold;
  std::vector<int64_t> guided_generation_foreground_labels;
  std::optional<std::string> sigma_max;
  std::optional<bool> show_control_condition, show_input, keep_input_resolution, resume;

  bool operator==(const ControlFields&) const = default;

  template <class Visitor>
  static void fields(Visitor&& visit) {
    using C = ControlFields;
    constexpr bool kPath = true;
    visit(&C::edge, Field{"edge", "edges to follow: a video, or auto to find them in --video", "", kPath});
    visit(&C::vis, Field{"vis", "blurred video to follow, or auto to blur --video", "blur", kPath});
    visit(&C::depth, Field{"depth", "depth video to follow, near is bright", "", kPath});
    visit(&C::seg, Field{"seg", "segmentation video to follow, a colour per object", "", kPath});
    visit(&C::edge_weight, Field{"edge_weight", "how strongly, 0 to 1; or one weight per control block"});
    visit(&C::vis_weight, Field{"vis_weight", "how strongly"});
    visit(&C::depth_weight, Field{"depth_weight", "how strongly"});
    visit(&C::seg_weight, Field{"seg_weight", "how strongly"});
    visit(&C::edge_mask, Field{"edge_mask", "where, in white: picture, video, .npy or .npz", "", kPath});
    visit(&C::vis_mask, Field{"vis_mask", "where", "", kPath});
    visit(&C::depth_mask, Field{"depth_mask", "where", "", kPath});
    visit(&C::seg_mask, Field{"seg_mask", "where", "", kPath});
    visit(&C::edge_preset,
          Field{"edge_preset", "threshold of edges: very_low, low, medium, high, very_high"});
    visit(&C::vis_preset, Field{"vis_preset", "strength of the blur: very_low to very_high"});
    visit(
        &C::normalize_control_weights,
        Field{"normalize_control_weights", "scale weights that sum to more than 1 (the reference does not)"});
    visit(&C::max_frames, Field{"max_frames", "how many of the input's frames to use"});
    visit(&C::context_frame_index, Field{"context_frame_index", "frame of the input whose style to take"});
    visit(&C::image_context_path, Field{"image_context_path", "picture whose style to take", "", kPath});
    visit(&C::guided_generation_mask,
          Field{"guided_generation_mask", "what of the input to keep, in white or as labels (.npz)", "",
                kPath});
    visit(&C::guided_generation_step_threshold,
          Field{"guided_generation_step_threshold", "last step that keeps it, from 0"});
    visit(&C::guided_generation_foreground_labels,
          Field{"guided_generation_foreground_labels", "labels to keep (default: all but 0)"});
    visit(&C::sigma_max, Field{"sigma_max", "accepted: the reference reads it and does not use it"});
    visit(&C::show_control_condition,
          Field{"show_control_condition", "put the controls beside the output, to its left"});
    visit(&C::show_input, Field{"show_input", "put the input beside the output, to its left"});
    visit(&C::keep_input_resolution, Field{"keep_input_resolution", "bring the output to the input's size"});
    visit(&C::resume, Field{"resume", "go on from the chunks that an interrupted run has left"});
  }
};

/// One control of a request.
struct ControlRequest {
  std::string name;             // of kControls
  std::string source;           // a file, or kComputed
  std::vector<double> weights;  // one, or one per control block; empty: 1
  std::optional<std::string> mask, preset;
};

/// The controls that a request asks for, in the order of kControls.
std::vector<ControlRequest> controls_of(const ControlFields& request);

}  // namespace orrery::config
