#pragma once
#include "orrery/config/settings.h"
#include "orrery/config/validate.h"
#include "orrery/models/cosmos/model.h"
#include "orrery/models/cosmos/reference.h"
#include "orrery/models/layout.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/sample/sigmas.h"
#include "orrery/weights/visitors.h"

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
struct PredictModel {
  Layout layout;
  std::string_view family;
  cosmos::TransformerConfig config;
  std::optional<cosmos::TransformerWeights> transformer;  // where its storage is widened
  wan_vae::Config vae_config;
  wan_vae::Weights vae;
  SchedulerConfig scheduler;
  config::Limits limits;     // what it can make, and its defaults
  uint64_t fingerprint = 0;  // of its configurations and of its tensors' names, shapes and dtypes
  at::ScalarType dtype = at::kFloat;
  weights::Storage storage = weights::Storage::kMapped;

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
