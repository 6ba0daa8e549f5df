#pragma once
#include "orrery/pipeline/chunk_store.h"
#include "orrery/pipeline/cosmos_run.h"
#include "orrery/pipeline/pipeline.h"
#include "orrery/pipeline/transfer_model.h"

namespace orrery::pipeline {

/// Control signals to video, chunk by chunk (spec cosmos-transfer2.5 §1.1, §4): makes what a completed
/// request asks for behind fit_to_input (transfer_input.h). In the arithmetic of `rules`
/// (model.reference(request)). `done`, the first process's, gets every chunk as it is finished, and has those
/// that need not be made: their clips are the video ("video"), the controls
/// ("edge" and so on, black where a mask excludes them) and, where they are shown, the input ("input") and
/// the mask of guided generation ("guided"), without the frames that repeat the chunk before or lie behind
/// the input's end. style: image features, or undefined. Returns the last chunk's latents [1, C, T, h, w].
/// All else as Pipeline::make.
Media transfer(const TransferModel& model, const TransferReference& rules, const parallel::Team& team,
               const config::Request& request, const Tensor& style, ChunkStore& done, const Hooks& hooks);

/// Opens a Cosmos-Transfer2.5 checkpoint (Family::open).
std::unique_ptr<Pipeline> open_transfer(const config::Settings& settings, at::ScalarType dtype);

}  // namespace orrery::pipeline
