#include "orrery/weights/safetensors.h"

#include "orrery/weights/safetensors_header.h"

namespace orrery::weights {

TensorMap read_safetensors(const Bytes& file, const std::string& path) {
  const auto header = read_safetensors_header(file.text(), path);
  TensorMap tensors;
  for (const auto& entry : header.entries) {
    const Bytes bytes = aligned(file.part(header.data_start + entry.begin, entry.end - entry.begin),
                                c10::elementSize(entry.dtype));
    tensors.emplace(entry.name, tensor_over(bytes, entry.dtype, entry.shape));
  }
  return tensors;
}

TensorMap open_safetensors(const std::string& path) { return read_safetensors(map_file(path), path); }

std::map<std::string, std::string> safetensors_metadata(const std::string& path) {
  return read_safetensors_header(map_file(path).text(), path).metadata;
}

}  // namespace orrery::weights
