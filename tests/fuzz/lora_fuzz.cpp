// libFuzzer: any bytes as a LoRA file, its keys and its metadata; only an Error may come out.
#include <sys/mman.h>
#include <unistd.h>

#include "orrery/weights/lora.h"
#include "weights_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orrery::weights;
  const int file = ::memfd_create("lora", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  try {
    for (const auto& module : open_lora("/proc/self/fd/" + std::to_string(file)).modules)
      touch({{"down", module.down}, {"up", module.up}});
  } catch (const orrery::Error&) {
  }
  ::close(file);
  return 0;
}
