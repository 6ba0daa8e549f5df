#pragma once
#include <string>

#include "orrery/weights/mapped_file.h"
#include "orrery/weights/tensor_map.h"

namespace orrery::weights {

/// The tensors of a state dict that torch.save wrote (.pt, .pth), zero-copy like open_safetensors: views,
/// shared storages and strides come out as they were saved. The pickle is read by a machine of our own that
/// executes nothing (pickle.h). The top level is a dict of tensors, or a dict that holds one under `model`,
/// `module` or `state_dict`; nn.Parameters count as tensors; entries that are no tensors (counters,
/// _extra_state bytes) are left out. Errors: missing_file, corrupt_archive (also a storage whose record is
/// missing or of another size), corrupt_pickle, unsafe_pickle, invalid_tensor, missing_key (no tensors at the
/// top level), unsupported (the container of torch.save before 1.6, compressed records, big-endian data,
/// unknown storage types).
TensorMap open_torch_file(const std::string& path);

/// The same over bytes that are in memory already; `path` is for messages.
TensorMap read_torch_file(const Bytes& file, const std::string& path);

}  // namespace orrery::weights
