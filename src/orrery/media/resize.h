#pragma once
#include <cstdint>
#include <span>

#include "orrery/media/frames.h"

// The resize rules of the reference pipelines. Every function takes any number of frames and treats each
// alike, leaves its argument alone, may be called on any thread, and throws an Error of kind request for an
// empty clip or size.
namespace orrery::media {

/// Official Cosmos rule (spec cosmos-predict2.5 §7.1): enlarge or shrink, aspect kept, until height × width
/// is covered, then cut the centre out. Antialiased bilinear in float32, rounded half to even once at the
/// end, as torchvision does for uint8 tensors.
Frames cover_crop(const Frames& frames, int64_t height, int64_t width);

enum class Filter { kBilinear, kBicubic, kLanczos };

/// Pillow's 8-bit resize, bit for bit (spec qwen2.5-vl-text §7.4): antialiased, horizontal pass first, uint8
/// in between. Pillow 13 runs the vertical pass first for some sizes; all older versions and this function
/// never do.
Frames stretch_pil(const Frames& frames, int64_t height, int64_t width, Filter filter);

/// torch's resize of 8-bit tensors, bit for bit, as torchvision's bicubic filter and the picture processors
/// of transformers 5 use it: as stretch_pil, but with weights of 16 bits, which moves some values by one
/// level.
Frames stretch_torch(const Frames& frames, int64_t height, int64_t width, Filter filter);

/// torch's "nearest", which diffusers uses for tensors (spec cosmos-predict2.5 §7.5): source index ⌊i ·
/// in/out⌋ in float32.
Frames stretch_nearest(const Frames& frames, int64_t height, int64_t width);

/// Every pixel becomes a factor × factor square.
Frames enlarge_nearest(const Frames& frames, int64_t factor);

/// One picture: a row per clip, a column per frame index, enlarged by factor. The clips have one size, and
/// every index exists in every clip.
Frames contact_sheet(std::span<const Frames> clips, std::span<const int64_t> indices, int64_t factor);

}  // namespace orrery::media
