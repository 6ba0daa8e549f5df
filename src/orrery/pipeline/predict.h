#pragma once
#include "orrery/pipeline/cosmos_run.h"
#include "orrery/pipeline/denoise.h"
#include "orrery/pipeline/pipeline.h"
#include "orrery/pipeline/predict_model.h"

namespace orrery::pipeline {

/// Whether a completed request needs the VAE's encoder: it gives frames, or goes on from its own.
bool encodes(const config::Request& request);

/// The network as denoise() takes it, for the clip's size and given frames; refers to its arguments.
Network<cosmos::Transformer> predict_network(const cosmos::Transformer& model,
                                             const cosmos::Prepared& positive,
                                             const cosmos::Prepared& negative, const Clip& clip);

/// Text, image or video to world: makes what a completed and validated request asks for (spec
/// cosmos-predict2.5 §1), a long video chunk by chunk (§9.6), in the arithmetic of `reference`
/// (model.reference(request)). given: the frames of read_given_frames. Media's latents are [C, T, h, w]: the
/// final ones, of the last chunk of a long video. All else as Pipeline::make.
Media predict(const PredictModel& model, const cosmos::Reference& reference, const parallel::Team& team,
              const config::Request& request, const media::Frames& given, const Hooks& hooks);

/// Opens a Cosmos-Predict2.5 checkpoint (Family::open).
std::unique_ptr<Pipeline> open_predict(const config::Settings& settings, at::ScalarType dtype);

}  // namespace orrery::pipeline
