#pragma once
#include "orrery/pipeline/denoise.h"
#include "orrery/pipeline/pipeline.h"

namespace orrery::pipeline {

/// Whether a completed request needs the VAE's encoder: it gives frames, or goes on from its own.
bool encodes(const config::Request& request);

/// The given frames as normalised latents [C, n, h, w] float32, n = 0 without frames; latents: the shape [1,
/// C, T, h, w] of the whole clip's. Only these frames are encoded: later latents do not depend on them (spec
/// cosmos-predict2.5 §7.1).
Tensor encode_given(const PredictModel& model, const cosmos::Reference& reference,
                    const media::Frames& frames, const Shape& latents, const wan_vae::Options& options = {});

/// Text, image or video to world: makes what a completed and validated request asks for (spec
/// cosmos-predict2.5 §1), a long video chunk by chunk (§9.6), in the arithmetic of `reference`
/// (model.reference(request)). given: the frames of read_given_frames. Media's latents are [C, T, h, w]: the
/// final ones, of the last chunk of a long video. All else as Pipeline::make.
Media predict(const PredictModel& model, const cosmos::Reference& reference, const parallel::Team& team,
              const config::Request& request, const media::Frames& given, const Hooks& hooks);

/// Opens a Cosmos-Predict2.5 checkpoint (Family::open).
std::unique_ptr<Pipeline> open_predict(const config::Settings& settings, at::ScalarType dtype);

}  // namespace orrery::pipeline
