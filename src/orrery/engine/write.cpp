#include "orrery/engine/write.h"

#include <cstring>
#include <filesystem>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/media/write.h"
#include "orrery/weights/safetensors.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

int64_t frame_count(const config::Request& request) {
  return request.enable_autoregressive.value_or(false) ? request.num_output_frames.value()
                                                       : request.num_frames.value();
}

int64_t pixel_bytes(const config::Request& request) {
  return 3 * frame_count(request) * request.height.value() * request.width.value();
}

// Bytes of pixels to a byte of float32 latents: 3 · (4 · 8 · 8) pixels to 16 · 4.
constexpr int64_t kPixelsPerLatent = 12;

/// How many bytes of pixels make a byte of the file, for pictures that compress badly but are no noise.
int64_t least_compression(const std::string& path) {
  if (media::output_kind(path) != media::OutputKind::kVideo) return 2;  // PNG
  return fs::path(path).extension() == ".mkv" ? 2 : 40;                 // FFV1 or H.264
}

}  // namespace

std::string output_path(const config::Request& request) {
  const bool still = frame_count(request) == 1;
  const std::string path = request.output.value_or(still ? "output.jpg" : "output.mp4");
  require(still || media::output_kind(path) != media::OutputKind::kImage, "output: ", path,
          " is a picture, the result has ", frame_count(request),
          " frames; expected a name that ends in .mp4, .mkv or / (a folder of PNG)");
  return path;
}

void check_writable(const std::string& path, int64_t bytes) {
  std::error_code failed;
  const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
  fs::create_directories(folder, failed);
  require(!failed && fs::is_directory(folder), "output: cannot make the folder ", folder.string(), ": ",
          failed.message());
  const std::string probe = (folder / concat(".orrery-", ::getpid(), ".partial")).string();
  try {
    write_file(probe, "orrery");
  } catch (const Error& e) {
    throw Error(e.kind(), concat("output: ", folder.string(), " cannot be written: ", e.message()));
  }
  fs::remove(probe, failed);
  const auto space = fs::space(folder, failed);
  if (!failed && static_cast<int64_t>(space.available) < bytes)
    fail(ErrorKind::kResource, "output: ", folder.string(), " has ",
         human_bytes(static_cast<int64_t>(space.available)), " left; ", path, " takes about ",
         human_bytes(bytes));
}

void check_writable(const config::Request& request) {
  check_writable(request.output.value(), pixel_bytes(request) / least_compression(*request.output));
  if (request.save_latents) check_writable(*request.save_latents, pixel_bytes(request) / kPixelsPerLatent);
}

std::vector<std::string> write(const config::Request& request, const pipeline::Video& video) {
  const std::string& path = request.output.value();
  media::WriteOptions options;
  if (request.crf) options.crf = *request.crf;
  if (media::output_kind(path) == media::OutputKind::kImage)
    media::write_image(path, video.frames, options);
  else
    media::write_video(path, video.frames, static_cast<double>(request.fps.value()), options);
  std::vector<std::string> files = {path};
  if (request.save_latents) {
    weights::write_safetensors(*request.save_latents, {{"latents", video.latents.unsqueeze(0)}});
    files.push_back(*request.save_latents);
  }
  return files;
}

}  // namespace orrery
