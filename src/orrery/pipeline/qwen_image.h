#pragma once
#include "orrery/pipeline/pipeline.h"
#include "orrery/pipeline/qwen_image_model.h"

namespace orrery::pipeline {

/// Text to image, and editing of the given pictures (spec qwen-image §1.2, §9): request.num_images pictures
/// with the seeds s, s + 1, … Media's latents are [n, S, 4·C]: each picture's final ones, packed, as
/// diffusers' `latents` are. Errors as Pipeline::make.
Media make_pictures(const QwenImageModel& model, const parallel::Team& team, const config::Request& request,
                    const Given& pictures, const Hooks& hooks);

/// Opens a checkpoint of Qwen-Image or of its editing models (Family::open).
std::unique_ptr<Pipeline> open_qwen_image(const config::Settings& settings, at::ScalarType dtype);

}  // namespace orrery::pipeline
