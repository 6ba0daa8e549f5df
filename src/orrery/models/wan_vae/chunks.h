#pragma once
#include "orrery/models/wan_vae/wan_vae.h"

namespace orrery::wan_vae {

/// A run of latent frames that is computed together.
struct Chunk {
  int64_t begin, end;
  bool first, last;  // of the clip
};

/// The first latent frame, then runs of options.chunk; [H, W] are the clip's pixels.
std::vector<Chunk> chunks(const Config& config, const Options& options, int64_t latent_frames, int64_t rows,
                          int64_t columns, at::ScalarType dtype);

}  // namespace orrery::wan_vae
