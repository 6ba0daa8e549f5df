#pragma once
#include <string>
#include <vector>

#include "orrery/models/cosmos_transfer/model.h"
#include "orrery/pipeline/cosmos_checkpoint.h"

namespace orrery::pipeline {

/// Where NVIDIA's code and diffusers make different videos from the same Cosmos-Transfer2.5 checkpoint (spec
/// cosmos-transfer2.5 §12), beside what cosmos::Reference says.
struct TransferReference {
  cosmos::Reference cosmos;
  bool chained_seeds;     // a seed per chunk; else one generator for all chunks
  bool mirrored;          // short chunks are filled with mirrored frames; else with the last one
  bool carries_bytes;     // a chunk begins with the last frames as 8 bits; else as they were decoded
  bool few_step = false;  // a distilled model's sampler (§5.4)
};

/// The branch of a ControlNet whose kind nobody tells: it follows whatever control it is given.
inline constexpr const char* kAnyControl = "control";

/// A Cosmos-Transfer2.5 checkpoint, opened with one control branch or several: everything but the text
/// encoder and the picture encoder, which are opened when a request needs them. Const and safe to share
/// between threads.
struct TransferModel : CosmosCheckpoint {
  cosmos_transfer::TransformerConfig config;
  bool distilled = false;                                          // to 4 steps without guidance (§5.4)
  std::optional<cosmos_transfer::TransformerWeights> transformer;  // where its storage is widened

  /// The reference that a request follows.
  const TransferReference& reference(const config::Request& request) const;

  /// The branch that a control runs in. Error of kind request if none was opened for it.
  size_t branch(const std::string& control) const;

  /// As PredictModel's.
  cosmos_transfer::Transformer open_transformer(const cosmos::Reference& reference) const;

  /// The sigmas of a completed request: the official ones are not the checkpoint's (§5.2).
  sample::Schedule schedule(const config::Request& request) const;
};

/// As open_predict_model. Of the checkpoint's controls, those that settings.controls names are opened; all,
/// if it names none.
TransferModel open_transfer_model(const config::Settings& settings, at::ScalarType dtype);

/// What a request's style picture becomes (§2.4), [tokens, width], or nothing without one. Says in a warning
/// that a model of several controls does not look at it (§11 U8). Errors of siglip::open_model; checkpoint,
/// if there is no picture encoder; request, if the picture is none.
Tensor style_of(const TransferModel& model, const config::Request& request);

/// Refuses a request whose style picture could not be seen; opens headers only.
void check_style(const TransferModel& model, const config::Request& request);

/// As those of PredictModel. Every request encodes.
void load_weights(TransferModel& model, config::WeightStorage storage);

}  // namespace orrery::pipeline
