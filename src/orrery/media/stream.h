#pragma once
#include <cstdint>
#include <span>

#include "orrery/media/frames.h"
#include "orrery/media/mask.h"
#include "orrery/media/read.h"
#include "orrery/media/stretch_opencv.h"

// The files that a Cosmos-Transfer request reads, and the reference's rules for each (spec
// cosmos-transfer2.5 §3.1, §4.6).
namespace orrery::media {

enum class Stream {
  kInput,
  kEdge,
  kVis,
  kDepth,
  kSeg,
  kControlMask,       // binary() afterwards
  kGuidedMask,        // a picture or video
  kGuidedMaskLabels,  // an array
};

/// How such a file is brought to the model's size.
OpencvFilter stream_filter(Stream stream);

/// Frames per second of the output: those of the input without their fraction, at least 1; 1 for a picture.
int64_t whole_fps(const Info& input);

/// `count` frames from number `begin` on, which the clip has.
Frames slice(const Frames& frames, int64_t begin, int64_t count);

/// The frames of these indices, each below the count, in this order; indices may repeat. Error of kind
/// request for an index outside.
Frames frames_at(const Frames& frames, std::span<const int64_t> indices);
Mask frames_at(const Mask& mask, std::span<const int64_t> indices);

/// Whether every pixel is black. Such a control counts as absent.
bool is_black(const Frames& frames);

}  // namespace orrery::media
