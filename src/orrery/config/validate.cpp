#include "orrery/config/validate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/checks.h"
#include "orrery/config/value.h"

namespace orrery::config {
namespace {

// The reference's chunk length (spec cosmos-predict2.5 §9.1), where the model's clip is at least as long.
constexpr int64_t kChunkFrames = 77;

using Text = std::optional<std::string>;

void check_size(const std::optional<int64_t>& size, const char* field, int64_t multiple, int64_t largest) {
  if (!size) return;
  const int64_t inside = std::clamp(*size, multiple, largest / multiple * multiple);
  const int64_t near = (inside + multiple / 2) / multiple * multiple;
  require(*size == near, field, ": expected a multiple of ", multiple, " from ", multiple, " to ", largest,
          ", found ", *size, " (nearest: ", near, ")");
}

template <class T, class Name>
std::string listed(const std::vector<T>& all, const Name& name) {
  std::vector<std::string> names;
  for (const T& one : all) names.emplace_back(name(one));
  return join(names);
}

/// complete() has answered one that the model has.
void check_aspect_ratio(const Request& r, const Limits& limits) {
  if (!r.aspect_ratio || limits.any_model) return;
  const auto known = listed(limits.presets, [](const SizePreset& p) { return p.aspect_ratio; });
  require(!known.empty(), "aspect_ratio: this model has no sizes of its own; give width and height");
  fail(ErrorKind::kRequest, "aspect_ratio: expected one of ", known, ", found ", in_quotes(*r.aspect_ratio));
}

void check_frames(const std::optional<int64_t>& frames, const Limits& limits) {
  if (!frames) return;
  if (limits.max_frames == 1)
    return require(*frames == 1, "num_frames: this model makes pictures, expected 1, found ", *frames);
  const int64_t k = limits.temporal_multiple, inside = std::clamp<int64_t>(*frames, 1, limits.max_frames);
  const int64_t near = std::min((inside - 1 + k / 2) / k * k + 1, (limits.max_frames - 1) / k * k + 1);
  require(*frames == near, "num_frames: expected ", k, "k+1 (1, ", k + 1, ", ", 2 * k + 1, " …) up to ",
          limits.max_frames, ", found ", *frames, " (nearest: ", near, ")");
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

void check_text(const Request& r) {
  require(r.prompt || r.prompt_embeds,
          "prompt: expected a prompt (--prompt, --prompt-path or --prompt-embeds), found none");
  require(!r.prompt || !r.prompt_embeds, "prompt and prompt_embeds: give one of them");
  require(!r.prompt || !strip(*r.prompt).empty(), "prompt: expected some text, found ",
          in_quotes(r.prompt.value_or("")));
  require(!r.negative_prompt || !r.negative_prompt_embeds,
          "negative_prompt and negative_prompt_embeds: give one of them");
  const auto check_encoding = [](const Text& text, const char* field) {
    if (text)
      require(is_utf8(*text), field, ": expected UTF-8 text, found other bytes in ", in_quotes(*text));
  };
  check_encoding(r.prompt, "prompt");
  check_encoding(r.negative_prompt, "negative_prompt");
}

void check_sampling(const Request& r, const Limits& limits) {
  require(!r.num_inference_steps || !r.steps, "num_inference_steps and steps: give one of them");
  check_range(r.num_inference_steps, "num_inference_steps", 1, 1000);
  check_range(r.steps, "steps", 1, 1000);
  const bool official = r.reference == Reference::kOfficial;
  require(!official || limits.official, "reference: this model has no official one beside diffusers");
  if (r.lightning) {
    require(limits.lightning, "lightning: this model has no few-step LoRA");
    require(*r.lightning == 4 || *r.lightning == 8, "lightning: expected 4 or 8 steps, found ", *r.lightning);
  }
  check_range(r.guidance, "guidance", 0, official ? limits.max_official_guidance : limits.max_guidance);
  // numpy's RandomState, the official noise, takes 32 bits; torch's generator takes them all.
  const int64_t largest_seed = official ? int64_t{UINT32_MAX} : INT64_MAX;
  if (r.seed)
    require(*r.seed >= -1 && *r.seed <= largest_seed, "seed: expected -1 (random) or an integer from 0 to ",
            largest_seed, ", found ", *r.seed);
  check_range(r.conditional_frame_timestep, "conditional_frame_timestep", -1, 1000);
  check_range(r.max_sequence_length, "max_sequence_length", 1, limits.max_sequence_length);
}

void check_picture_mode(const Request& r, const Limits& limits, Mode mode) {
  const auto given = std::ssize(r.images);
  require(!r.video, to_string(mode), ": this model makes pictures, found a video");
  require(!r.enable_autoregressive.value_or(false), "enable_autoregressive: this model makes pictures");
  if (mode == Mode::kText2Image)
    require(given == 0, "text2image: this model takes no image, found ", given, " (editing models do)");
  else
    require(given >= 1 && given <= limits.max_images, "edit: expected 1",
            limits.max_images > 1 ? concat(" to ", limits.max_images, " images") : " image",
            " (--image), found ", given);
}

void check_mode(const Request& r, const Limits& limits) {
  require(r.images.empty() || !r.video, "image and video: give one of them");
  if (r.num_images)
    require(limits.max_num_images > 1 || *r.num_images == 1, "num_images: this model makes one video, found ",
            *r.num_images, "; write one sample per seed in an --input file");
  const Mode mode = mode_of(r);
  if (r.mode)
    require(std::find(limits.modes.begin(), limits.modes.end(), mode) != limits.modes.end(),
            "mode: expected ", listed(limits.modes, [](Mode m) { return to_string(m); }),
            ", which this model makes, found ", to_string(mode));
  if (limits.pictures()) return check_picture_mode(r, limits, mode);
  if (mode == Mode::kTransfer) return;  // check_controls
  require(std::ssize(r.images) <= limits.max_images, "image: expected at most ", limits.max_images,
          ", found ", r.images.size());
  const bool image = !r.images.empty();
  const char* given = image ? "an image" : r.video ? "a video" : "neither";
  if (mode == Mode::kText2World)
    require(!image && !r.video, "text2world: expected no image and no video, found ", given,
            " (image2world and video2world take one)");
  if (mode == Mode::kImage2World)
    require(image || r.video,
            "image2world: expected an image, or a video whose last frame is taken, found neither");
  if (mode == Mode::kVideo2World)
    require(r.video.has_value(), "video2world: expected a video, found ", given,
            image ? " (image2world takes an image)" : "");
}

void check_conditioning(const Request& r, const Limits& limits) {
  if (!r.num_latent_conditional_frames) return;
  const int64_t given = *r.num_latent_conditional_frames;
  const Mode mode = mode_of(r);
  const int64_t low = mode == Mode::kText2World ? 0 : 1;
  const int64_t high = mode == Mode::kVideo2World ? limits.max_conditional_frames : low;
  require(given >= low && given <= high, "num_latent_conditional_frames: expected ", low,
          high > low ? concat(" to ", high) : "", " for ", to_string(mode), ", found ", given);
  if (!r.num_frames) return;
  const int64_t least = limits.temporal_multiple * given + 1;
  require(*r.num_frames >= least, "num_frames: ", given, " given latent frames need at least ", least,
          " frames, found ", *r.num_frames);
}

void check_long_video(const Request& r, const Limits& limits) {
  check_range(r.num_output_frames, "num_output_frames", 1, 100000);
  if (!r.enable_autoregressive.value_or(false)) return;
  const int64_t clip = r.num_frames.value_or(limits.max_frames);
  require(clip > 1, "num_frames: a long video is made of clips of at least ", limits.temporal_multiple + 1,
          " frames, found ", clip);
  check_range(r.chunk_size, "chunk_size", 2, clip);
  if (!r.chunk_overlap) return;
  const int64_t overlap = *r.chunk_overlap, k = limits.temporal_multiple;
  const int64_t longest = k * (limits.max_conditional_frames - 1) + 1;
  require(overlap >= 1 && overlap <= longest && (overlap - 1) % k == 0, "chunk_overlap: expected 1 or ",
          longest, " frames, found ", overlap);
  require(overlap < r.chunk_size.value_or(clip), "chunk_overlap: expected fewer frames than chunk_size ",
          r.chunk_size.value_or(clip), ", found ", overlap);
}

void check_paths(const Request& r) {
  if (r.name) check_name(*r.name);
  Request::fields([&](auto member, const Field& field) {
    const auto check = [&](const std::string& path) {
      require(!path.empty(), field.name, ": expected a path, found \"\"");
    };
    using T = std::decay_t<decltype(r.*member)>;
    if (!field.path && field.name != "output") return;
    if constexpr (std::is_same_v<T, Text>) {
      if (r.*member) check(*(r.*member));
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      std::for_each((r.*member).begin(), (r.*member).end(), check);
    }
  });
}

}  // namespace

void check_range(const std::optional<int64_t>& value, const char* field, int64_t low, int64_t high) {
  if (value)
    require(*value >= low && *value <= high, field, ": expected an integer from ", low, " to ", high,
            ", found ", *value);
}

void check_range(const std::optional<double>& value, const char* field, double low, double high) {
  // Written so that NaN fails.
  if (value)
    require(*value >= low && *value <= high, field, ": expected a number from ", low, " to ", high,
            ", found ", *value);
}

void check_name(const std::string& name, const std::string& where) {
  constexpr size_t kLongest = 200;  // file systems allow 255 bytes, suffixes included
  const bool plain =
      name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  require(plain && !name.empty() && name.size() <= kLongest, where, "name: expected a file name of at most ",
          kLongest, " bytes without /, found ", in_quotes(name));
}

bool Limits::pictures() const {
  return modes.size() == 1 && (modes[0] == Mode::kText2Image || modes[0] == Mode::kEdit);
}

Limits Limits::of_any_model() {
  Limits limits;
  limits.any_model = limits.lightning = true;
  limits.modes = {Mode::kText2World, Mode::kImage2World, Mode::kVideo2World,
                  Mode::kText2Image, Mode::kEdit,        Mode::kTransfer};
  limits.max_width = limits.max_height = 16384;
  limits.max_images = 3, limits.max_num_images = 1000, limits.max_sequence_length = 1024;
  return limits;
}

Request complete(const Request& request, const Limits& limits) {
  Request r = overlay(limits.defaults, request);
  if (!r.mode) r.mode = limits.modes.size() == 1 ? limits.modes[0] : mode_of(r);
  for (const SizePreset& preset : limits.presets)
    if (r.aspect_ratio == preset.aspect_ratio)
      r.width = preset.width, r.height = preset.height, r.aspect_ratio.reset();
  if (r.lightning && !request.num_inference_steps && !request.steps) r.num_inference_steps = *r.lightning;
  if (r.lightning && !request.guidance) r.guidance = 1;
  if (limits.pictures()) return r;
  if (*r.mode == Mode::kTransfer) {
    if (r.max_frames && !r.num_frames) r.num_frames = std::exchange(r.max_frames, {});
    if (r.width || r.height) r.resolution.reset();
    return r;
  }
  if (!r.num_latent_conditional_frames) r.num_latent_conditional_frames = static_cast<int64_t>(*r.mode);
  if (r.enable_autoregressive.value_or(false)) {
    if (!r.num_output_frames) r.num_output_frames = kChunkFrames;
    if (!r.chunk_size) r.chunk_size = std::min(kChunkFrames, r.num_frames.value_or(kChunkFrames));
    if (!r.chunk_overlap) r.chunk_overlap = 1;
  }
  return r;
}

void validate(const Request& request, const Limits& limits, const Plan& plan) {
  resolve(plan);
  check_paths(request);
  check_controls(request, limits);
  check_mode(request, limits);
  check_text(request);
  check_aspect_ratio(request, limits);
  check_range(request.num_images, "num_images", 1, std::max<int64_t>(limits.max_num_images, 1));
  check_size(request.width, "width", limits.spatial_multiple, limits.max_width);
  check_size(request.height, "height", limits.spatial_multiple, limits.max_height);
  const bool transfer = mode_of(request) == Mode::kTransfer;
  if (!transfer) check_frames(request.num_frames, limits);
  check_range(request.fps, "fps", 1, 240);
  check_range(request.crf, "crf", 0, 51);
  check_sampling(request, limits);
  if (transfer || limits.pictures()) return;
  check_conditioning(request, limits);
  check_long_video(request, limits);
}

}  // namespace orrery::config
