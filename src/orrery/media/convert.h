#pragma once
#include <cstdint>
#include <span>

#include "orrery/media/ffmpeg.h"

// Between RGB24 and whatever a codec works in, by libswscale: no scaling, accurate rounding, chroma
// interpolated in both directions. Internal to media/. Objects belong to one thread at a time.
namespace orrery::media {

class ToRgb {
 public:
  /// on_white: alpha is blended with white, in float64 and truncated to 8 bits; else it is dropped.
  explicit ToRgb(bool on_white = false) : on_white_(on_white) {}

  /// Writes the frame to rgb [height, width, 3]. Colour matrix and range are the frame's; BT.601 and limited
  /// range where it does not say. Error of kind unsupported for a pixel format that swscale cannot read.
  void operator()(const AVFrame& frame, uint8_t* rgb);

 private:
  void prepare(const AVFrame& frame);

  bool on_white_;
  Owned<SwsContext> sws_;
  Owned<AVFrame> whole_;  // null unless frames need padding
  Owned<AVFrame> out_;
  int width_ = 0, height_ = 0, format_ = -1, space_ = -1, full_ = -1;
};

class FromRgb {
 public:
  /// Frames of this size and format; YUV with the BT.601 matrix, in full range if `full_range`.
  FromRgb(int64_t height, int64_t width, AVPixelFormat format, bool full_range);

  /// rgb: [height, width, 3]. The frame belongs to this object and is valid until the next call.
  AVFrame* operator()(std::span<const uint8_t> rgb);

 private:
  int height_, width_;
  Owned<SwsContext> sws_;
  Owned<AVFrame> in_, out_;  // padded to whole chroma samples
};

}  // namespace orrery::media
