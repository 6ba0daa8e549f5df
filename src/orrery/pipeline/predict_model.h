#pragma once
#include "orrery/models/cosmos/model.h"
#include "orrery/models/cosmos/reference.h"
#include "orrery/pipeline/checkpoint.h"
#include "orrery/sample/sigmas.h"

namespace orrery::pipeline {

/// How a checkpoint wants to be sampled (spec cosmos-predict2.5 §5.1, §5.2, §5.5).
struct SchedulerConfig {
  bool karras = true;
  double sigma_max = 200, sigma_min = 0.01;  // karras
  double shift = 5;                          // otherwise
};

/// scheduler/scheduler_config.json. Error of kind unsupported for a scheduler that is not UniPC of order 2 on
/// flow sigmas.
SchedulerConfig read_scheduler_config(const std::string& path);

/// A Cosmos-Predict2.5 checkpoint, opened: everything but the text encoder, which is opened when a prompt
/// needs it. Const and safe to share between threads.
struct PredictModel : Checkpoint {
  cosmos::TransformerConfig config;
  std::optional<cosmos::TransformerWeights> transformer;  // where its storage is widened
  NetworkFile adapted;  // the transformer's tensors where LoRA files have changed some, else empty
  SchedulerConfig scheduler;

  /// The reference whose arithmetic a request follows; by default the one in whose layout the checkpoint
  /// came.
  const cosmos::Reference& reference(const config::Request& request) const;

  /// The transformer in the arithmetic of a reference. Mapped weights stay mapped as long as the result
  /// lives, so that their pages make room for the VAE afterwards; opening them costs milliseconds.
  cosmos::Transformer open_transformer(const cosmos::Reference& reference) const;

  /// The sigmas of a completed request.
  sample::Schedule schedule(const config::Request& request) const;
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
