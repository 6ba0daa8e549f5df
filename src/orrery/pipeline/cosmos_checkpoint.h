#pragma once
#include "orrery/models/cosmos/reference.h"
#include "orrery/pipeline/pipeline.h"
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

/// What the Cosmos families have in common: a text encoder whose layers are all used, UniPC, and two
/// references.
struct CosmosCheckpoint : Checkpoint {
  int64_t text_input_width = 0;  // what the transformer takes of the text encoder
  SchedulerConfig scheduler;

  /// Whether a request follows the official reference; by default, that in whose layout the checkpoint came.
  bool official(const config::Request& request) const;

  /// The sigmas of a completed request.
  sample::Schedule schedule(const config::Request& request) const;
};

/// What one step on a clip of so many frames takes in the transformer's own blocks; its weights are left out.
Work cosmos_work(const CosmosCheckpoint& checkpoint, const cosmos::TransformerConfig& transformer,
                 const config::Request& request, int64_t frames, double skip_guidance_up_to);

/// The text encoder, if there is one.
std::optional<Part> text_encoder_part(const CosmosCheckpoint& checkpoint);

}  // namespace orrery::pipeline
