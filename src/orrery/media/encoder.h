#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "orrery/media/convert.h"
#include "orrery/media/ffmpeg.h"
#include "orrery/media/write.h"

// Encoders behind write.h. Internal to media/.
namespace orrery::media {

enum class ImageFormat { kPng, kJpeg, kWebp };

/// The bytes of a picture file. rgb: [height, width, 3].
std::string encode_image(ImageFormat format, std::span<const uint8_t> rgb, int64_t height, int64_t width,
                         const WriteOptions& options);

/// One video file, under exactly this name; what becomes of an incomplete one is the caller's business.
class VideoFile {
 public:
  enum class Format { kMp4, kMatroska };

  VideoFile(Format format, const std::string& path, int64_t height, int64_t width, double fps,
            const WriteOptions& options);
  void add(std::span<const uint8_t> rgb);
  void finish();

 private:
  struct FreeOutput {
    void operator()(AVFormatContext* p) const { avformat_free_context(p); }
  };

  void open_codec(Format format, int64_t height, int64_t width, double fps, const WriteOptions& options);
  void encode(const AVFrame* frame);
  void check(int code) const;

  std::string path_;
  Owned<AVIOContext> io_;
  std::unique_ptr<AVFormatContext, FreeOutput> container_;
  Owned<AVCodecContext> codec_;
  std::unique_ptr<FromRgb> from_rgb_;
  int64_t frames_ = 0;
};

}  // namespace orrery::media
