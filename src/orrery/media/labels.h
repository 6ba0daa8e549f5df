#pragma once
#include <span>
#include <string>

#include "orrery/media/mask.h"

namespace orrery::media {

/// Whether the name is that of an array of labels: .npz or .npy.
bool is_label_file(const std::string& path);

/// read_mask for such files. Internal to media/.
Mask read_labels(const std::string& path, std::span<const int64_t> foreground);

}  // namespace orrery::media
