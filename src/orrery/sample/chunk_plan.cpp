// Sources: nvidia-cosmos/cosmos-transfer2.5 @ 2ff49d0,
// cosmos_transfer2/_src/transfer2/inference/inference_pipeline.py (_get_num_chunks, _pad_input_frames);
// huggingface/diffusers @ 58eb52c, pipelines/cosmos/pipeline_cosmos2_5_transfer.py, whose chunks are the
// same ones and whose padding is not.
#include "orrery/sample/chunk_plan.h"

#include <algorithm>
#include <numeric>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

constexpr int64_t kTemporalFactor = 4;  // of the Wan VAE

/// How many latent frames the first `frames` frames of a clip are.
int64_t latent_count(int64_t frames) { return frames == 0 ? 0 : 1 + (frames - 1) / kTemporalFactor; }

}  // namespace

int64_t used_frames(int64_t found, int64_t limit) {
  require(found >= 1, "expected an input with frames, got ", found);
  require(limit >= 0, "expected a limit of at least 0 frames, got ", limit);
  return std::min({found, limit == 0 ? found : limit, kMaxInputFrames});
}

ChunkPlan chunk_plan(int64_t frames, int64_t chunk_frames, int64_t conditional_frames) {
  require(frames >= 1, "expected an input with frames, got ", frames);
  require(chunk_frames >= 1 && chunk_frames % kTemporalFactor == 1,
          "expected chunks of 4k + 1 frames (the model is trained on ", kChunkFrames, "), got ",
          chunk_frames);
  require(0 <= conditional_frames && conditional_frames <= 2, "expected 0, 1 or 2 conditional frames, got ",
          conditional_frames);
  ChunkPlan plan{frames, chunk_frames, {}};
  plan.chunks.push_back({0, std::min(chunk_frames, frames), 0, 0});
  if (chunk_frames == 1) return plan;
  const int64_t stride = chunk_frames - conditional_frames;
  for (int64_t begin = stride; plan.chunks.back().end < frames; begin += stride)
    plan.chunks.push_back({begin, std::min(begin + chunk_frames, frames), conditional_frames,
                           latent_count(conditional_frames)});
  return plan;
}

std::vector<int64_t> chunk_indices(const ChunkPlan& plan, int64_t i, int64_t available, std::string_view what,
                                   ChunkPadding padding) {
  ensure(0 <= i && i < static_cast<int64_t>(plan.chunks.size()), "chunk_indices: expected a chunk below ",
         plan.chunks.size(), ", got ", i);
  const ClipChunk& chunk = plan.chunks[static_cast<size_t>(i)];
  require(available > chunk.begin, what, " has ", available, " frames, and chunk ", i + 1, " of ",
          plan.chunks.size(), " begins with frame ", chunk.begin, "; expected more than ",
          plan.chunks.back().begin, " for an input of ", plan.frames, " frames");
  // The reference pads a short input before it cuts chunks, so a longer control fills the first one itself.
  const int64_t end = std::min(i == 0 ? plan.chunk_frames : chunk.end, available);
  std::vector<int64_t> indices(static_cast<size_t>(end - chunk.begin));
  std::iota(indices.begin(), indices.end(), chunk.begin);
  const auto length = static_cast<size_t>(plan.chunk_frames);
  if (padding == ChunkPadding::kRepeatLast) indices.resize(length, indices.back());
  while (indices.size() < length) {
    // Every mirror image lacks its last frame, the sequence's first.
    const size_t so_far = indices.size(), mirrored = std::max<size_t>(so_far - 1, 1);
    const size_t more = std::min(mirrored, length - so_far);
    for (size_t k = 0; k < more; ++k) indices.push_back(indices[so_far - 1 - k]);
  }
  return indices;
}

}  // namespace orrery::sample
