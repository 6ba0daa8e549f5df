#pragma once
#include <functional>

#include "orrery/models/siglip/image.h"
#include "orrery/models/siglip/weights.h"
#include "orrery/weights/visitors.h"

// The vision tower of SigLIP2 NaFlex, whose last hidden state is the image context of Cosmos-Transfer2.5
// (spec cosmos-transfer2.5 §2.4).
namespace orrery::siglip {

/// The learned positions, stretched to `grid`: [max_patches, E] float32. Rows behind the grid repeat row 0.
Tensor positions(const Weights& weights, const Config& config, Grid grid);

/// Hears hidden state i of 0 … L, [max_patches, E], in order: 0 is the embeddings, i the residual stream
/// after layer i (the last one is not normed). It may keep the tensor.
using HiddenStates = std::function<void(int64_t i, const Tensor& state)>;

/// The normed last hidden state: [max_patches, E] in `dtype`, the padded rows among them. Padded rows start
/// as bias and position, see the picture's patches and are seen by none. Computes in `dtype` (float32 or
/// bfloat16) from weights of any type, which are left where they are. In bfloat16, norms are rounded once.
/// Error of kind internal if the patches are not the tower's.
Tensor run_tower(const Weights& weights, const Config& config, const ImagePatches& patches,
                 at::ScalarType dtype, const HiddenStates& each = {});

/// The tower's weights among the tensors of a whole checkpoint. Errors of the Loader; the text tower, the
/// pooling head and the logits' scale and bias may be there or not.
Weights load_weights(weights::TensorMap tensors, const Config& config, at::ScalarType compute,
                     weights::Storage storage, const std::string& origin);

/// A checkpoint's vision tower with its picture processor. Const and safe to share between threads.
struct Model {
  Config config;
  Weights weights;
  at::ScalarType compute = at::kFloat;
};

/// Reads a folder with config.json, preprocessor_config.json and the weights (weights::open_weights). Errors
/// of read_config, open_weights and load_weights.
Model open_model(const std::string& folder, at::ScalarType compute, weights::Storage storage);

/// What Cosmos-Transfer is given of a style picture, for all chunks of a video of height × width (its model
/// size): run_tower of patches_of, [max_patches, E] in the model's compute type. Errors of patches_of.
Tensor features(const Model& model, const media::Frames& picture, int64_t height, int64_t width);

}  // namespace orrery::siglip
