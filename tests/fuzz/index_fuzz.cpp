// libFuzzer: any text as an index of shards; only an Error may come out, and no shard outside the folder.
#include <cstdlib>

#include "orrery/base/error.h"
#include "orrery/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [name, shard] : orrery::weights::read_safetensors_index(text, "fuzz.index.json"))
      if (shard.empty() || shard == ".." || shard.find('/') != shard.npos) std::abort();
  } catch (const orrery::Error&) {
  }
  return 0;
}
