#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/media/frames.h"

// Pictures and clips into files. Equal frames and options give equal files, byte for byte, on any number of
// cores. Everything is written under NAME.partial and renamed when it is complete; on failure the partial is
// removed and NAME untouched. Errors: request (unknown extension, a size or option that the format does not
// have), resource (cannot be written, disk full).
namespace orrery::media {

/// By extension: .mp4 (H.264, yuv420p) and .mkv (FFV1, lossless) are videos; .png, .jpg, .jpeg and .webp
/// pictures; a name that ends in a slash is a folder of 000000.png, 000001.png and so on. Error of kind
/// request for any other name.
enum class OutputKind { kVideo, kImage, kFolder };
OutputKind output_kind(const std::string& path);

struct WriteOptions {
  int64_t crf = 25;      // H.264, 0 (best) to 51; 25 is what imageio makes of the reference's quality 5
  int64_t quality = 85;  // JPEG (libjpeg's scale) and WebP, 1 to 100
  // Key and UTF-8 value, kept in PNG, MP4 and MKV.
  std::vector<std::pair<std::string, std::string>> text = {};
};

struct VideoSink;  // a file or a folder

/// Writes a clip frame by frame; one thread at a time. Without finish() the destructor leaves nothing behind.
class VideoWriter {
 public:
  /// path: of kind video or folder; a folder must be new or empty. MP4 needs even sides.
  VideoWriter(const std::string& path, int64_t height, int64_t width, double fps,
              const WriteOptions& options = {});
  ~VideoWriter();
  VideoWriter(VideoWriter&&) noexcept;
  VideoWriter& operator=(VideoWriter&&) noexcept;

  /// rgb: [height, width, 3]; copied.
  void add(std::span<const uint8_t> rgb);

  /// Completes the file and gives it its name; nothing may be added afterwards. At least one frame.
  void finish();

 private:
  std::unique_ptr<VideoSink> sink_;
};

void write_video(const std::string& path, const Frames& frames, double fps, const WriteOptions& options = {});

/// frames.count == 1. JPEG is 4:2:0 with libjpeg's tables, as Pillow writes it (§9.4), but for the step of
/// the mean, which is 8.
void write_image(const std::string& path, const Frames& frames, const WriteOptions& options = {});

}  // namespace orrery::media
