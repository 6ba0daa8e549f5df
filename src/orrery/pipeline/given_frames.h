#pragma once
#include "orrery/config/request.h"
#include "orrery/media/frames.h"
#include "orrery/models/cosmos/reference.h"

namespace orrery::pipeline {

/// The pixels that a completed request gives, fitted to its size (spec cosmos-predict2.5 §7.1, §7.5): none
/// for text2world; the image, or the video's last frame, for image2world; the video's last 4·(n − 1) + 1
/// frames for n given latent frames. Errors of kind request: a file that is missing, unreadable or too short.
media::Frames read_given_frames(const config::Request& request, const cosmos::Reference& reference);

/// Fits a picture (video: false) or frames of a clip to a size, by the reference's rule.
media::Frames fit(const media::Frames& frames, int64_t height, int64_t width,
                  const cosmos::Reference& reference, bool video);

}  // namespace orrery::pipeline
