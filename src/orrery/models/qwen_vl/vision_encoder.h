#pragma once
#include "orrery/models/qwen_vl/vision_model.h"
#include "orrery/weights/visitors.h"

namespace orrery::qwen_vl {

/// A checkpoint's vision tower with its picture processor. Const and safe to share between threads.
struct VisionEncoder {
  VisionConfig config;
  ImageConfig images;
  VisionWeights weights;
};

/// Reads config.json and the tensors below `visual.` of the text encoder's folder (any layout of spec
/// qwen2.5-vl-text §6; the text decoder is not read), and preprocessor_config.json of the processor's. Errors
/// of read_vision_config, read_image_config and the Loader; kind checkpoint if the two folders disagree.
VisionEncoder open_vision_encoder(const std::string& folder, const std::string& processor_folder,
                                  at::ScalarType compute, weights::Storage storage);

/// run_vision of patches_of one RGB picture; a prompt and its negative can share the result.
EncodedImage encode_image(const VisionEncoder& encoder, const media::Frames& image, at::ScalarType dtype);

}  // namespace orrery::qwen_vl
