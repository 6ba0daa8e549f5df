#pragma once
#include <string>

#include "orrery/media/ffmpeg.h"
#include "orrery/media/read.h"

namespace orrery::media {

/// One opened file and the decoder of its picture stream. Internal to media/; belongs to one thread at a
/// time. Errors as in read.h.
class Decoder {
 public:
  explicit Decoder(const std::string& path);

  const Info& info() const { return info_; }

  /// The next frame, of the first frame's size; null after the last. The caller may keep it.
  Owned<AVFrame> next();

 private:
  struct CloseInput {
    void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
  };

  void open_container();
  void open_codec();
  void feed();
  void check(const AVFrame& frame);

  std::string path_;
  Owned<AVIOContext> io_;  // outlives the container
  std::unique_ptr<AVFormatContext, CloseInput> container_;
  AVStream* stream_ = nullptr;
  Owned<AVCodecContext> codec_;
  Info info_;
  int64_t decoded_ = 0;
};

}  // namespace orrery::media
