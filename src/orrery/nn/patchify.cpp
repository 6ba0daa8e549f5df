#include "orrery/nn/patchify.h"

namespace orrery::nn {

Tensor patchify(const Tensor& clip, int64_t patch) {
  const int64_t channels = clip.size(0), frames = clip.size(1), rows = clip.size(2) / patch,
                columns = clip.size(3) / patch;
  return clip.reshape({channels, frames, rows, patch, columns, patch})
      .permute({1, 2, 4, 0, 3, 5})
      .reshape({frames * rows * columns, channels * patch * patch});
}

Tensor unpatchify(const Tensor& tokens, int64_t patch, int64_t frames, int64_t rows, int64_t columns) {
  const int64_t channels = tokens.size(1) / (patch * patch);
  return tokens.reshape({frames, rows, columns, patch, patch, channels})
      .permute({5, 0, 1, 3, 2, 4})
      .reshape({channels, frames, rows * patch, columns * patch});
}

Tensor unpack(const Tensor& tokens, int64_t patch, int64_t frames, int64_t rows, int64_t columns) {
  const int64_t channels = tokens.size(1) / (patch * patch);
  return tokens.reshape({frames, rows, columns, channels, patch, patch})
      .permute({3, 0, 1, 4, 2, 5})
      .reshape({channels, frames, rows * patch, columns * patch});
}

}  // namespace orrery::nn
