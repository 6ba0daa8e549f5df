// libFuzzer: any bytes as a safetensors file; only an Error may come out, and what loads can be read.
#include "orrery/weights/safetensors.h"
#include "weights_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orrery::weights;
  try {
    touch(read_safetensors(exact_copy(data, size), "fuzz.safetensors"));
  } catch (const orrery::Error&) {
  }
  return 0;
}
