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

}  // namespace

std::string output_path(const config::Request& request) {
  const bool still = frame_count(request) == 1;
  const std::string path = request.output.value_or(still ? "output.jpg" : "output.mp4");
  require(still || media::output_kind(path) != media::OutputKind::kImage, "output: ", path,
          " is a picture, the result has ", frame_count(request),
          " frames; expected a name that ends in .mp4, .mkv or / (a folder of PNG)");
  return path;
}

void check_writable(const std::string& path) {
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
