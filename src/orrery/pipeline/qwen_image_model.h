#pragma once
#include "orrery/models/qwen_image/model.h"
#include "orrery/models/qwen_vl/image_prompt.h"
#include "orrery/pipeline/checkpoint.h"
#include "orrery/sample/flow_euler.h"

namespace orrery::pipeline {

/// A Qwen-Image or Qwen-Image-Edit checkpoint, opened: everything but text encoder and vision tower, which
/// are opened when a prompt needs them. Const and safe to share between threads.
struct QwenImageModel : Checkpoint {
  qwen_image::TransformerConfig config;
  std::optional<qwen_image::TransformerWeights> transformer;  // where its storage is widened
  NetworkFile adapted;  // the transformer's tensors where LoRA files have changed some, else empty
  sample::FlowShift shift;
  qwen_vl::PromptTemplate prompt = qwen_vl::PromptTemplate::kText;

  // Pixels of a given picture as the VAE and as the vision tower see it (spec qwen-image §9); Qwen-Image-Edit
  // shows the first to both.
  int64_t vae_area = 1024 * 1024, vision_area = 384 * 384;

  bool edits() const { return prompt != qwen_vl::PromptTemplate::kText; }
  int64_t pixels_per_token() const { return vae_config.spatial_factor() * config.patch; }

  /// As PredictModel's: mapped weights stay mapped as long as the result lives.
  qwen_image::Transformer open_transformer() const;

  /// The N + 1 noise levels of a completed request whose pictures have so many tokens.
  std::vector<float> sigmas(const config::Request& request, int64_t tokens) const;
};

/// Family::open's errors. The transformer may also come from one file (checkpoint_path), in ComfyUI's
/// spelling too.
QwenImageModel open_qwen_image_model(const config::Settings& settings, at::ScalarType dtype);

/// Brings the transformer's weights into the storage that the plan asks for and the VAE's decoder, for models
/// that edit its encoder too, into the form that its convolutions take.
void load_weights(QwenImageModel& model, config::WeightStorage storage);

}  // namespace orrery::pipeline
