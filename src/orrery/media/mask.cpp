#include "orrery/media/mask.h"

#include "orrery/base/error.h"
#include "orrery/media/labels.h"
#include "orrery/media/read.h"

namespace orrery::media {

Mask read_mask(const std::string& path, std::span<const int64_t> foreground) {
  if (is_label_file(path)) return read_labels(path, foreground);
  require(foreground.empty(), "foreground labels are for arrays of labels (.npz, .npy); ", path,
          " is read as a picture or video, where white is the foreground");
  const Frames frames = read_frames(path);
  Mask mask{frames.count, frames.height, frames.width, {}};
  mask.levels.reserve(static_cast<size_t>(mask.count * mask.frame_bytes()));
  for (size_t i = 0; i < frames.rgb.size(); i += 3) mask.levels.push_back(frames.rgb[i]);
  return mask;
}

Mask binary(Mask mask) {
  constexpr uint8_t kHalf = 128;  // the first level above 127.5
  for (uint8_t& level : mask.levels) level = level >= kHalf ? 255 : 0;
  return mask;
}

}  // namespace orrery::media
