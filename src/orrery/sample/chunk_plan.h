#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

// A video that is longer than the model's clip is made in chunks, each beginning with the last frames of the
// one before (spec cosmos-transfer2.5 §4). Integer arithmetic only; every function is pure.
namespace orrery::sample {

inline constexpr int64_t kChunkFrames = 93;       // what Cosmos-Transfer2.5 is trained on
inline constexpr int64_t kMaxInputFrames = 5000;  // of which the reference reads no more

/// How many of the input's frames are used: `found`, cut to `limit` (0: none) and kMaxInputFrames. Error of
/// kind request unless found ≥ 1 and limit ≥ 0.
int64_t used_frames(int64_t found, int64_t limit = 0);

struct ClipChunk {
  int64_t begin = 0, end = 0;  // frames of the input; fewer than the chunk's length at the video's end
  int64_t overlap = 0;         // how many of its first frames repeat the chunk before, and are dropped
  int64_t conditional = 0;     // how many of its first latent frames are given
  bool operator==(const ClipChunk&) const = default;
};

struct ChunkPlan {
  int64_t frames = 0;        // of the input
  int64_t chunk_frames = 0;  // that the model makes at a time: 4 · (latent frames − 1) + 1
  std::vector<ClipChunk> chunks;

  int64_t latent_frames() const { return 1 + (chunk_frames - 1) / 4; }
};

/// A plan for `frames` frames. The first chunk is given nothing, every later one begins with the last
/// `conditional_frames` (0, 1 or 2) frames of the chunk before; of two, the first alone is enforced. Chunks
/// of one frame make a picture: the first frame, whatever follows. Errors of kind request: no frames, a chunk
/// that is not 4k + 1 frames long, other counts of conditional frames, or as many as the chunk has.
ChunkPlan chunk_plan(int64_t frames, int64_t chunk_frames, int64_t conditional_frames);

/// What follows a stream's last frame in a chunk that it does not fill.
enum class ChunkPadding {
  kMirror,      // official: the frames so far backwards, last one first, again and again
  kRepeatLast,  // diffusers
};

/// Which frames of a stream fill chunk i, chunk_frames indices. `available` is the stream's own number of
/// frames: a control may be longer than the input, or shorter as long as every chunk has one of its frames.
/// Error of kind request, which names the stream (`what`), if not.
std::vector<int64_t> chunk_indices(const ChunkPlan& plan, int64_t i, int64_t available, std::string_view what,
                                   ChunkPadding padding = ChunkPadding::kMirror);

}  // namespace orrery::sample
