#pragma once
#include <map>
#include <string>

#include "orrery/weights/mapped_file.h"
#include "orrery/weights/tensor_map.h"

namespace orrery::weights {

/// Every tensor of the file, zero-copy: views of copy-on-write mappings that live as long as their tensors;
/// a large tensor takes its pages along when it goes. Only the header is read (28 GB open in milliseconds),
/// and it is checked completely. Files whose data are not aligned for their dtype (a header of odd length)
/// have those tensors copied. Errors: missing_file and those of safetensors_header.h.
TensorMap open_safetensors(const std::string& path);

/// The same over bytes that are in memory already; `path` is for messages.
TensorMap read_safetensors(const Bytes& file, const std::string& path);

/// The file's `__metadata__`, empty if it has none. Errors as open_safetensors.
std::map<std::string, std::string> safetensors_metadata(const std::string& path);

/// FOLDER/STEM.safetensors, or the shards that FOLDER/STEM.safetensors.index.json names; every name of the
/// index must be in its shard. A tensor that the index does not mention is returned too, so that nothing is
/// lost in silence. Errors: missing_file (neither is there, or a shard is not), missing_key, invalid_path (a
/// shard outside FOLDER), invalid_header (the index is not what it should be), and those of open_safetensors.
TensorMap open_indexed(const std::string& folder, const std::string& stem);

/// name → shard of an index's text; `path` is for messages. Errors: invalid_header, invalid_path.
std::map<std::string, std::string> read_safetensors_index(std::string_view text, const std::string& path);

/// Writes tensors (any device, any strides) and metadata; readers in Python accept the file. It is written as
/// PATH.partial, synced and renamed, so PATH is complete or untouched. Errors: kind resource (disk full, no
/// permission), unsupported (a dtype that the format does not know).
void write_safetensors(const std::string& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace orrery::weights
