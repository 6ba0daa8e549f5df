#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/controls.h"
#include "orrery/config/fields.h"

namespace orrery::config {

enum class Mode { kText2World, kImage2World, kVideo2World, kText2Image, kEdit, kTransfer };
constexpr std::array<std::string_view, 6> names_of(Mode) {
  return {"text2world", "image2world", "video2world", "text2image", "edit", "transfer"};
}

/// Whose arithmetic, noise and defaults: spec cosmos-predict2.5 §12.1.
enum class Reference { kOfficial, kDiffusers };
constexpr std::array<std::string_view, 2> names_of(Reference) { return {"official", "diffusers"}; }

/// What to make. A field that is not set is answered by the checkpoint's defaults (`complete` in validate.h).
/// prompt_path, negative_prompt_file, resolution and input_path are shorthands: `expand` (spec_file.h)
/// replaces them by the fields that they stand for, and nothing behind it reads them.
struct Request : ControlFields {
  std::optional<std::string> name;
  std::optional<Mode> mode;
  std::optional<std::string> prompt, prompt_path, negative_prompt, negative_prompt_file;
  std::vector<std::string> images;
  std::optional<std::string> video, input_path;
  std::optional<int64_t> width, height;
  std::optional<std::string> resolution, aspect_ratio;
  std::optional<int64_t> num_frames, fps, num_inference_steps, steps;
  std::optional<double> guidance;
  std::optional<int64_t> seed, num_images, lightning;
  std::optional<Reference> reference;
  std::optional<int64_t> num_latent_conditional_frames;
  std::optional<double> conditional_frame_timestep;
  std::optional<int64_t> max_sequence_length;
  std::optional<bool> enable_autoregressive;
  std::optional<int64_t> num_output_frames, chunk_size, chunk_overlap;
  std::optional<std::string> output, init_latents, save_latents, prompt_embeds, negative_prompt_embeds;
  std::optional<int64_t> crf;

  bool operator==(const Request&) const = default;

  template <class Visitor>
  static void fields(Visitor&& visit) {
    using R = Request;
    constexpr bool kPath = true;
    visit(&R::prompt,
          Field{"prompt", "what the video or picture shows; what to change in given pictures", "p"});
    visit(&R::prompt_path, Field{"prompt_path", "file that holds the prompt", "", kPath});
    visit(&R::negative_prompt, Field{"negative_prompt", "what it should not look like; may be empty", "n"});
    visit(&R::negative_prompt_file,
          Field{"negative_prompt_file", "file that holds the negative prompt", "", kPath});
    visit(&R::images,
          Field{"image", "first frame of the video; picture to edit (may be repeated)", "images", kPath});
    visit(&R::video,
          Field{"video", "clip to continue from its last frames, or to transfer", "video_path", kPath});
    visit(&R::input_path, Field{"input_path", "image or video, told apart by its suffix", "", kPath});
    visit(&R::mode,
          Field{"mode", "what is given (default: by the model, --image and --video)", "inference_type"});
    visit(&R::name, Field{"name", "base name of the output; required and unique in files"});
    visit(&R::width, Field{"width", "pixels, a multiple of 16", "W"});
    visit(&R::height, Field{"height", "pixels, a multiple of 16", "H"});
    visit(&R::resolution,
          Field{"resolution", "\"height,width\", none for the model's own; Transfer: 720, 480, 256, …"});
    visit(&R::aspect_ratio, Field{"aspect_ratio", "a picture model's own size of that shape, such as 16:9"});
    visit(&R::num_frames, Field{"num_frames", "frames of one clip, 4k+1"});
    visit(&R::fps, Field{"fps", "frames per second of the output"});
    visit(&R::num_inference_steps, Field{"num_inference_steps", "network evaluations, exactly"});
    visit(&R::steps,
          Field{"steps", "steps as the reference counts them (official with karras: one more evaluation)",
                "num_steps"});
    visit(&R::guidance,
          Field{"guidance",
                "Cosmos: g in v = v_cond + g (v_cond - v_neg); Qwen-Image: w in v_neg + w (v_cond - v_neg)",
                "guidance_scale,true_cfg_scale"});
    visit(&R::lightning, Field{"lightning", "sampling of a Lightning LoRA: 4 or 8 steps without guidance"});
    visit(&R::seed, Field{"seed", "of the noise; -1 draws one and prints it", "s"});
    visit(&R::num_images, Field{"num_images", "pictures, with the seeds s, s+1, …", "num_images_per_prompt"});
    visit(&R::reference, Field{"reference", "whose arithmetic and noise to follow"});
    visit(&R::num_latent_conditional_frames,
          Field{"num_latent_conditional_frames", "given latent frames: 0, 1 or 2 (default: by the mode)"});
    visit(&R::conditional_frame_timestep,
          Field{"conditional_frame_timestep", "time of the given frames; negative: as the others"});
    visit(&R::max_sequence_length, Field{"max_sequence_length", "text tokens"});
    visit(&R::enable_autoregressive, Field{"enable_autoregressive", "make a long video chunk by chunk"});
    visit(&R::num_output_frames, Field{"num_output_frames", "length of a long video (ignored otherwise)"});
    visit(&R::chunk_size, Field{"chunk_size", "frames of one chunk of a long video",
                                "num_video_frames_per_chunk,num_frames_per_chunk"});
    visit(&R::chunk_overlap,
          Field{"chunk_overlap", "frames that a chunk takes from the one before: 1 or 5 (Transfer: 0 to 2)",
                "num_conditional_frames,num_ar_conditional_frames"});
    ControlFields::fields(visit);
    visit(&R::output, Field{"output", "file to write; with -i, the folder", "o,output_dir"});
    visit(&R::init_latents,
          Field{"init_latents", "safetensors with the initial noise, `latents`", "", kPath});
    visit(&R::save_latents, Field{"save_latents", "safetensors to write the final latents to", "", kPath});
    visit(&R::prompt_embeds, Field{"prompt_embeds", "safetensors used instead of the prompt", "", kPath});
    visit(&R::negative_prompt_embeds,
          Field{"negative_prompt_embeds", "safetensors used instead of the negative prompt", "", kPath});
    visit(&R::crf, Field{"crf", "H.264 quality, 0 (lossless) to 51"});
  }
};

/// `over` where it says something, `base` elsewhere. Fields that answer the same question (image and video;
/// steps and num_inference_steps; a prompt, its file and its embeddings; width, height and aspect_ratio) are
/// replaced together.
Request overlay(Request base, const Request& over);

/// The mode that was asked for, or the one that image and video imply for a model that makes videos.
Mode mode_of(const Request& request);

/// Network evaluations per branch (spec cosmos-predict2.5 §5.1): num_inference_steps as it is; `steps` n
/// gives n, or n + 1 for the official reference with karras sigmas. One of the two must be set.
int64_t evaluations(const Request& request, bool karras);

}  // namespace orrery::config
