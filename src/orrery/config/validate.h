#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "orrery/config/plan.h"
#include "orrery/config/request.h"

namespace orrery::config {

/// A size that a model was trained for.
struct SizePreset {
  std::string aspect_ratio;  // "16:9"
  int64_t width, height;
};

/// What a model can make, and what it makes where a request says nothing. The numbers here are
/// Cosmos-Predict2.5's (spec §2.4, §9.1, §9.3); a checkpoint's own facts and recommendations replace them.
struct Limits {
  /// Where it is not known yet which model it will be: only what none could do is refused.
  static Limits of_any_model();

  bool any_model = false;

  /// A model makes videos in several modes, or one kind of thing.
  std::vector<Mode> modes = {Mode::kText2World, Mode::kImage2World, Mode::kVideo2World};
  bool official = true;                    // whether reference = official is there
  bool lightning = false;                  // whether few-step LoRA are there
  std::vector<std::string> controls = {};  // of kControls, where it is known which ones it follows
  int64_t max_images = 1, max_num_images = 1;
  std::vector<SizePreset> presets = {};
  int64_t spatial_multiple = 16;  // VAE 8 × patch 2
  int64_t temporal_multiple = 4;  // frames = temporal_multiple · k + 1
  int64_t max_width = 1920, max_height = 1920, max_frames = 509;
  int64_t max_sequence_length = 512;
  int64_t max_conditional_frames = 2;  // latent
  double max_official_guidance = 7, max_guidance = 100;
  Request defaults;

  /// Whether it makes pictures, not videos.
  bool pictures() const;
};

/// The request with everything answered that validate and a pipeline ask for: the defaults, then the mode (by
/// the model, or by image and video), the size of an aspect ratio, what lightning implies, the given latent
/// frames (by the mode), and for long videos length and chunks. Pure; does not check.
Request complete(const Request& request, const Limits& limits);

/// Refuses what cannot be run, with one line that says what was expected, what was found and what would be
/// legal. Takes a completed request; a field that is still not set is not checked. Pure: it opens no file,
/// and every rank comes to the same answer. Errors of kind request, or unsupported (see resolve in plan.h).
void validate(const Request& request, const Limits& limits, const Plan& plan);

/// Refuses a sample's name that is not a plain file name: the output is NAME.mp4. Errors begin with `where`.
void check_name(const std::string& name, const std::string& where = {});

}  // namespace orrery::config
