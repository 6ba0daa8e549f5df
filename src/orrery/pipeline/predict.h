#pragma once
#include "orrery/media/frames.h"
#include "orrery/pipeline/denoise.h"

namespace orrery::pipeline {

struct Video {
  media::Frames frames;     // on the run's first process; none on the others
  Tensor latents;           // [C, T, h, w] float32: the final latents (of the last chunk of a long video)
  int64_t evaluations = 0;  // of the network per branch, all chunks together
};

/// Whether a completed request needs the VAE's encoder: it gives frames, or goes on from its own.
bool encodes(const config::Request& request);

/// The given frames as normalised latents [C, n, h, w] float32, n = 0 without frames; latents: the shape [1,
/// C, T, h, w] of the whole clip's. Only these frames are encoded: later latents do not depend on them (spec
/// cosmos-predict2.5 §7.1).
Tensor encode_given(const PredictModel& model, const cosmos::Reference& reference,
                    const media::Frames& frames, const Shape& latents, const wan_vae::Options& options = {});

/// Text, image or video to world: makes what a completed and validated request asks for (spec
/// cosmos-predict2.5 §1), a long video chunk by chunk (§9.6), in the arithmetic of `reference`
/// (model.reference(request)). request.seed ≥ 0; given: the frames of read_given_frames. Text and VAE run on
/// the calling thread with all its cores, denoising on the team. Errors: request (embeddings, latents),
/// checkpoint (text encoder), cancelled, internal (not finite).
Video predict(const PredictModel& model, const cosmos::Reference& reference, const parallel::Team& team,
              const config::Request& request, const media::Frames& given, const Hooks& hooks);

}  // namespace orrery::pipeline
