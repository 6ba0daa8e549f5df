#include "orrery/media/write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/media/encoder.h"
#include "orrery/media/read.h"

namespace orrery::media {

namespace fs = std::filesystem;

namespace {

std::string extension(const std::string& path) {
  std::string result = fs::path(path).extension().string();
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

[[noreturn]] void cannot_write(const std::string& path, int code) {
  fail(ErrorKind::kResource, "cannot write ", path, ": ", std::strerror(code));
}

/// Makes the file's content durable before its name can appear.
void sync(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool good = file >= 0 && ::fsync(file) == 0;
  const int code = errno;
  if (file >= 0) ::close(file);
  if (!good) cannot_write(path, code);
}

void check_size(const std::string& path, int64_t height, int64_t width) {
  require(height > 0 && width > 0 && height <= kMaxSide && width <= kMaxSide && height * width <= kMaxPixels,
          "cannot write ", path, ": expected sides of 1 to ", kMaxSide, " and at most ", kMaxPixels,
          " pixels, got ", width, " × ", height);
}

void check_options(const std::string& path, const WriteOptions& options) {
  require(options.crf >= 0 && options.crf <= 51, "cannot write ", path, ": expected a crf of 0 to 51, got ",
          options.crf);
  require(options.quality >= 1 && options.quality <= 100, "cannot write ", path,
          ": expected a quality of 1 to 100, got ", options.quality);
}

}  // namespace

OutputKind output_kind(const std::string& path) {
  if (path.ends_with('/')) return OutputKind::kFolder;
  const std::string end = extension(path);
  if (end == ".mp4" || end == ".mkv") return OutputKind::kVideo;
  if (end == ".png" || end == ".jpg" || end == ".jpeg" || end == ".webp") return OutputKind::kImage;
  fail(ErrorKind::kRequest, "cannot write ", path, ": unknown extension '", end,
       "'; expected .mp4 (H.264), .mkv (FFV1, lossless), .png, .jpg, .jpeg, .webp, or NAME/ (a folder of "
       "PNG)");
}

/// Where a VideoWriter's frames go.
struct VideoSink {
  virtual ~VideoSink() = default;
  virtual void add(std::span<const uint8_t> rgb) = 0;
  virtual void finish() = 0;

  size_t frame_bytes = 0;
  int64_t frames = 0;
};

namespace {

class FileSink final : public VideoSink {
 public:
  FileSink(const std::string& path, int64_t height, int64_t width, double fps, const WriteOptions& options)
      : path_(path), partial_(path + ".partial") {
    const bool mp4 = extension(path) == ".mp4";
    require(!mp4 || (height % 2 == 0 && width % 2 == 0), "cannot write ", path,
            ": MP4 (yuv420p) needs even sides, got ", width, " × ", height, "; .mkv takes any");
    try {
      file_ = std::make_unique<VideoFile>(mp4 ? VideoFile::Format::kMp4 : VideoFile::Format::kMatroska,
                                          partial_, height, width, fps, options);
    } catch (...) {
      remove_partial();
      throw;
    }
  }
  ~FileSink() override {
    if (!file_) return;
    file_.reset();
    remove_partial();
  }

  void add(std::span<const uint8_t> rgb) override { file_->add(rgb); }

  void finish() override {
    file_->finish();
    sync(partial_);
    if (std::rename(partial_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
    file_.reset();
  }

 private:
  void remove_partial() {
    std::error_code ignored;
    if (fs::is_regular_file(partial_, ignored)) fs::remove(partial_, ignored);
  }

  std::string path_, partial_;
  std::unique_ptr<VideoFile> file_;  // null once the file has its name
};

class FolderSink final : public VideoSink {
 public:
  FolderSink(const std::string& path, int64_t height, int64_t width, const WriteOptions& options)
      : path_(path.substr(0, path.find_last_not_of('/') + 1)),
        partial_(path_ + ".partial"),
        height_(height),
        width_(width),
        options_(options) {
    std::error_code error;
    require(!fs::exists(path_, error) || (fs::is_directory(path_, error) && fs::is_empty(path_, error)),
            "cannot write ", path, ": expected a new or empty folder");
    fs::remove_all(partial_, error);
    if (!fs::create_directory(partial_, error)) cannot_write(path, error.value());
  }
  ~FolderSink() override {
    std::error_code ignored;
    if (!finished_) fs::remove_all(partial_, ignored);
  }

  void add(std::span<const uint8_t> rgb) override {
    write_file(fmt::format("{}/{:06}.png", partial_, frames),
               encode_image(ImageFormat::kPng, rgb, height_, width_, options_));
  }

  void finish() override {
    if (std::rename(partial_.c_str(), path_.c_str()) != 0) cannot_write(path_, errno);
    finished_ = true;
  }

 private:
  std::string path_, partial_;
  int64_t height_, width_;
  WriteOptions options_;
  bool finished_ = false;
};

}  // namespace

VideoWriter::VideoWriter(const std::string& path, int64_t height, int64_t width, double fps,
                         const WriteOptions& options) {
  const OutputKind kind = output_kind(path);
  require(kind != OutputKind::kImage, "cannot write a video to ", path, "; expected .mp4, .mkv or NAME/");
  check_size(path, height, width);
  check_options(path, options);
  require(std::isfinite(fps) && fps > 0 && fps <= 1000, "cannot write ", path,
          ": expected 0 < fps ≤ 1000, got ", fps);
  if (kind == OutputKind::kFolder)
    sink_ = std::make_unique<FolderSink>(path, height, width, options);
  else
    sink_ = std::make_unique<FileSink>(path, height, width, fps, options);
  sink_->frame_bytes = static_cast<size_t>(height * width * 3);
}

VideoWriter::~VideoWriter() = default;
VideoWriter::VideoWriter(VideoWriter&&) noexcept = default;
VideoWriter& VideoWriter::operator=(VideoWriter&&) noexcept = default;

void VideoWriter::add(std::span<const uint8_t> rgb) {
  ensure(sink_ != nullptr, "VideoWriter: a frame after finish()");
  require(rgb.size() == sink_->frame_bytes, "VideoWriter: expected a frame of ", sink_->frame_bytes,
          " bytes, got ", rgb.size());
  sink_->add(rgb);
  ++sink_->frames;
}

void VideoWriter::finish() {
  ensure(sink_ != nullptr, "VideoWriter: finish() twice");
  require(sink_->frames > 0, "VideoWriter: expected at least one frame");
  sink_->finish();
  sink_.reset();
}

void write_video(const std::string& path, const Frames& frames, double fps, const WriteOptions& options) {
  VideoWriter writer(path, frames.height, frames.width, fps, options);
  const auto bytes = static_cast<size_t>(frames.frame_bytes());
  const std::span<const uint8_t> all(frames.rgb);
  for (int64_t f = 0; f < frames.count; ++f) writer.add(all.subspan(static_cast<size_t>(f) * bytes, bytes));
  writer.finish();
}

void write_image(const std::string& path, const Frames& frames, const WriteOptions& options) {
  require(output_kind(path) == OutputKind::kImage, "cannot write a picture to ", path,
          "; expected .png, .jpg, .jpeg or .webp");
  require(frames.count == 1, "cannot write ", path, ": expected one frame, got ", frames.count);
  check_size(path, frames.height, frames.width);
  check_options(path, options);
  const std::string end = extension(path);
  const ImageFormat format = end == ".png"    ? ImageFormat::kPng
                             : end == ".webp" ? ImageFormat::kWebp
                                              : ImageFormat::kJpeg;
  require(format == ImageFormat::kPng || options.text.empty(), "cannot write ", path,
          ": text is kept in PNG, MP4 and MKV only");
  write_file(path, encode_image(format, frames.rgb, frames.height, frames.width, options));
}

}  // namespace orrery::media
