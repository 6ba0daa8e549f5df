#include "orrery/pipeline/given_frames.h"

#include "orrery/base/error.h"
#include "orrery/media/read.h"
#include "orrery/media/resize.h"

namespace orrery::pipeline {

media::Frames fit(const media::Frames& frames, int64_t height, int64_t width,
                  const cosmos::Reference& reference, bool video) {
  if (reference.cover_crop) return media::cover_crop(frames, height, width);
  // diffusers turns a picture into a tensor first and a video's frames not (VideoProcessor): two different
  // resizes.
  return video ? media::stretch_pil(frames, height, width, media::Filter::kBilinear)
               : media::stretch_nearest(frames, height, width);
}

media::Frames read_given_frames(const config::Request& request, const cosmos::Reference& reference) {
  const int64_t latent = request.num_latent_conditional_frames.value();
  if (latent == 0) return {};
  const int64_t height = request.height.value(), width = request.width.value();
  if (!request.images.empty()) {
    require(latent == 1, "an image gives one latent frame, not ", latent, "; use a video, or image2world");
    return fit(media::read_frames(request.images[0], media::Selection::first(1)), height, width, reference,
               /*video=*/false);
  }
  const int64_t wanted = 4 * (latent - 1) + 1;
  return fit(media::read_frames(request.video.value(), media::Selection::last(wanted)), height, width,
             reference, /*video=*/true);
}

}  // namespace orrery::pipeline
