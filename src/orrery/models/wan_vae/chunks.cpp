#include "orrery/models/wan_vae/chunks.h"

#include <c10/core/ScalarType.h>

#include <algorithm>

#include "orrery/base/error.h"

namespace orrery::wan_vae {
namespace {

constexpr int64_t kChunkBytes = int64_t{256} << 20;
constexpr int64_t kLargestChunk = 8;  // beyond, weights and remembered frames no longer count

/// A residual block at full resolution holds its input, a normed input with two past frames, and a result: 14
/// frames for a chunk of 4.
int64_t bytes_per_latent_frame(const Config& c, int64_t rows, int64_t columns, at::ScalarType dtype) {
  return 7 * c.temporal_factor() / 2 * rows * columns * c.base_dim *
         static_cast<int64_t>(c10::elementSize(dtype));
}

}  // namespace

std::vector<Chunk> chunks(const Config& config, const Options& options, int64_t latent_frames, int64_t rows,
                          int64_t columns, at::ScalarType dtype) {
  require(options.chunk >= 0, "VAE chunk: expected 0 or more latent frames, got ", options.chunk);
  const int64_t fitting =
      kChunkBytes / std::max<int64_t>(1, bytes_per_latent_frame(config, rows, columns, dtype));
  const int64_t size = options.chunk > 0 ? options.chunk : std::clamp<int64_t>(fitting, 1, kLargestChunk);
  std::vector<Chunk> all = {{0, 1, true, latent_frames == 1}};
  for (int64_t begin = 1; begin < latent_frames; begin += size) {
    const int64_t end = std::min(latent_frames, begin + size);
    all.push_back({begin, end, false, end == latent_frames});
  }
  return all;
}

}  // namespace orrery::wan_vae
