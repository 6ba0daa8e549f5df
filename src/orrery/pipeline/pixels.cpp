#include "orrery/pipeline/pixels.h"

#include <ATen/ops/from_blob.h>

#include "orrery/base/error.h"
#include "orrery/comm/agreement.h"

namespace orrery::pipeline {

Tensor levels_of(const media::Frames& frames) {
  return at::from_blob(const_cast<uint8_t*>(frames.rgb.data()),
                       {frames.count, frames.height, frames.width, 3}, at::kByte);
}

media::Frames frames_of(const Tensor& levels) {
  const auto bytes = levels.contiguous();
  const uint8_t* begin = bytes.const_data_ptr<uint8_t>();
  return {bytes.size(0), bytes.size(1), bytes.size(2), {begin, begin + bytes.numel()}};
}

Tensor to_tensor(const media::Frames& frames, bool bf16) {
  const auto clip = levels_of(frames).permute({3, 0, 1, 2});
  if (bf16) return (clip.to(at::kBFloat16) / 127.5 - 1.0).to(at::kFloat).contiguous();
  return (clip.to(at::kFloat) / 255.0 * 2.0 - 1.0).contiguous();
}

void append(media::Frames& frames, const Tensor& pixels, bool truncate) {
  ensure(frames.count == 0 || (frames.height == pixels.size(2) && frames.width == pixels.size(3)),
         "frames of two sizes in one clip");
  auto levels = (pixels.to(at::kFloat) / 2.0 + 0.5).clamp(0, 1) * 255.0;
  if (!truncate) levels = levels.round();
  const auto bytes = levels.to(at::kByte).permute({1, 2, 3, 0}).contiguous();
  frames.count += bytes.size(0), frames.height = bytes.size(1), frames.width = bytes.size(2);
  const uint8_t* begin = bytes.const_data_ptr<uint8_t>();
  frames.rgb.insert(frames.rgb.end(), begin, begin + bytes.numel());
}

wan_vae::Options vae_options(const parallel::Team& team, const Hooks& hooks) {
  wan_vae::Options options;
  options.group = &team.processes();
  if (team.plan().vae_tiling) options.tiling = wan_vae::Tiling();
  options.between = [&] { comm::together(team.control(), [&] { hooks.check(); }); };
  return options;
}

}  // namespace orrery::pipeline
