#pragma once
#include "orrery/models/cosmos/model.h"
#include "orrery/pipeline/cosmos_checkpoint.h"

namespace orrery::pipeline {

/// A Cosmos-Predict2.5 checkpoint, opened: everything but the text encoder, which is opened when a prompt
/// needs it. Const and safe to share between threads.
struct PredictModel : CosmosCheckpoint {
  cosmos::TransformerConfig config;
  std::optional<cosmos::TransformerWeights> transformer;  // where its storage is widened
  NetworkFile adapted;  // the transformer's tensors where LoRA files have changed some, else empty

  /// The reference whose arithmetic a request follows; by default the one in whose layout the checkpoint
  /// came.
  const cosmos::Reference& reference(const config::Request& request) const;

  /// The transformer in the arithmetic of a reference. Mapped weights stay mapped as long as the result
  /// lives, so that their pages make room for the VAE afterwards; opening them costs milliseconds.
  cosmos::Transformer open_transformer(const cosmos::Reference& reference) const;
};

/// Opens the checkpoint that `settings` names: reads its configurations and checks every tensor's name and
/// shape; weights stay in their files. `dtype` is the compute type of the transformer and the text encoder;
/// the VAE is float32 on a CPU. Errors of find_layout, of the configurations and of the Loader.
PredictModel open_predict_model(const config::Settings& settings, at::ScalarType dtype);

/// Brings the transformer's weights into the storage that the plan asks for and the VAE's decoder into the
/// form that its convolutions take.
void load_weights(PredictModel& model, config::WeightStorage storage);

/// Does the same for the VAE's encoder, unless it is done: for requests that encode (predict.h).
void load_encoder(PredictModel& model);

}  // namespace orrery::pipeline
