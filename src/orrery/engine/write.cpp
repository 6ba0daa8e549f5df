#include "orrery/engine/write.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/log.h"
#include "orrery/base/text.h"
#include "orrery/config/json.h"
#include "orrery/engine/machine.h"
#include "orrery/media/stream.h"
#include "orrery/media/write.h"
#include "orrery/weights/safetensors.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool makes_pictures(const config::Request& request) {
  return request.mode == config::Mode::kText2Image || request.mode == config::Mode::kEdit;
}

int64_t frame_count(const config::Request& request) {
  if (makes_pictures(request)) return request.num_images.value();
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

std::string picture_path(const std::string& path, int64_t k, int64_t count) {
  if (media::output_kind(path) == media::OutputKind::kFolder) {
    std::string number = std::to_string(k);
    return path + std::string(6 - std::min<size_t>(number.size(), 6), '0') + number + ".png";
  }
  if (count == 1) return path;
  const fs::path file = path;
  return (file.parent_path() / concat(file.stem().string(), "-", k + 1, file.extension().string())).string();
}

/// PATH's file with a suffix before its extension, or with another extension: out/clip.mp4 →
/// out/clip_control_edge.mp4; a folder out/frames/ → out/frames_control_edge/.
std::string beside(const std::string& path, const std::string& suffix, const std::string& extension = "") {
  if (media::output_kind(path) == media::OutputKind::kFolder) {
    const fs::path folder = fs::path(path).parent_path();
    return folder.string() + suffix + (extension.empty() ? "/" : extension);
  }
  const fs::path file = path;
  return (file.parent_path() /
          concat(file.stem().string(), suffix, extension.empty() ? file.extension().string() : extension))
      .string();
}

/// Part by part, as it comes; a single frame may be a picture.
std::string write_film(const config::Request& request, const pipeline::Film& film,
                       const media::WriteOptions& options) {
  const std::string path = beside(request.output.value(), film.suffix);
  const media::Frames first = film.part(0);
  if (media::output_kind(path) == media::OutputKind::kImage) {
    media::write_image(path, media::slice(first, 0, 1), options);
    return path;
  }
  media::VideoWriter writer(path, first.height, first.width, static_cast<double>(request.fps.value()),
                            options);
  for (int64_t k = 0; k < film.parts; ++k) {
    const media::Frames part = k == 0 ? first : film.part(k);
    for (int64_t f = 0; f < part.count; ++f)
      writer.add(std::span(part.rgb).subspan(static_cast<size_t>(f * part.frame_bytes()),
                                             static_cast<size_t>(part.frame_bytes())));
  }
  writer.finish();
  return path;
}

/// What makes picture k again, wherever it is then written.
std::string record(config::Request request, const config::Settings& settings, int64_t k) {
  request.output.reset(), request.save_latents.reset(), request.name.reset();
  if (request.num_images) {
    request.seed = pipeline::seed_of(*request.seed, k);
    request.num_images = 1;
  }
  Json kept = Json::object(), all = config::to_json(settings);
  for (const char* field :
       {"model", "checkpoint_path", "vae", "text_encoder", "tokenizer", "variant", "lora"})
    if (all.contains(field)) kept[field] = all[field];
  return Json{{"request", config::to_json(request)}, {"settings", kept}, {"versions", versions()}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string output_path(const config::Request& request) {
  if (makes_pictures(request)) {
    const std::string path = request.output.value_or("output.png");
    require(
        media::output_kind(path) != media::OutputKind::kVideo, "output: ", path,
        " is a video, the result a picture; expected a name that ends in .png, .jpg, .webp or / (a folder)");
    return path;
  }
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

std::vector<std::string> write(const config::Request& request, const pipeline::Media& media,
                               const config::Settings& settings) {
  const std::string& path = request.output.value();
  media::WriteOptions options;
  if (request.crf) options.crf = *request.crf;
  std::vector<std::string> files;
  if (!media.films.empty()) {
    for (const auto& film : media.films) files.push_back(write_film(request, film, options));
    write_file(beside(path, "", ".txt"), request.prompt.value_or(""));
  } else if (makes_pictures(request) || media::output_kind(path) == media::OutputKind::kImage) {
    for (int64_t k = 0; k < media.frames.count; ++k) {
      files.push_back(picture_path(path, k, media.frames.count));
      if (fs::path(files.back()).extension() == ".png")
        options.text = {{kRecordKey, record(request, settings, k)}};
      media::write_image(files.back(), media::slice(media.frames, k, 1), options);
    }
  } else {
    media::write_video(path, media.frames, static_cast<double>(request.fps.value()), options);
    files = {path};
  }
  if (request.save_latents && !media.latents.defined()) {
    log::warn("save_latents: all chunks were there already, so there are no latents to save");
  } else if (request.save_latents) {
    weights::write_safetensors(*request.save_latents, {{"latents", media.latents}});
    files.push_back(*request.save_latents);
  }
  return files;
}

}  // namespace orrery
