#pragma once
#include "orrery/pipeline/pipeline.h"
#include "orrery/pipeline/prompt.h"
#include "orrery/pipeline/qwen_image_model.h"

namespace orrery::pipeline {

/// `picture` at the size of about `area` pixels that keeps its shape, sides multiples of 32 (diffusers'
/// calculate_dimensions; spec qwen-image §9). Error of kind request for a picture that is too narrow.
qwen_vl::Size size_of_area(const media::Frames& picture, int64_t area);

/// … resized to it as Pillow's Lanczos does.
media::Frames resized_to_area(const media::Frames& picture, int64_t area);

/// Embeds prompt and negative prompt in the model's conversation with the given pictures, as far as `wanted`,
/// or takes the embeddings that the request brings: [L, text_width] each, without padding. Encoder and tower
/// are opened here and released again; both prompts share what the tower makes of the pictures. Says how many
/// tokens were cut off. Errors as embed_prompts (prompt.h); checkpoint (no picture processor).
PromptEmbeds embed_prompts(const QwenImageModel& model, const config::Request& request, const Given& pictures,
                           Branches wanted);

}  // namespace orrery::pipeline
