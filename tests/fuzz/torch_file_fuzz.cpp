// libFuzzer: any bytes as a file of torch.save, and as the pickle in one; only an Error may come out.
#include "orrery/weights/pickle.h"
#include "orrery/weights/torch_file.h"
#include "weights_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orrery::weights;
  const Bytes file = exact_copy(data, size);
  try {
    touch(read_torch_file(file, "fuzz.pt"));
  } catch (const orrery::Error&) {
  }
  // Most mutations break the archive; the pickle machine is also fed directly.
  try {
    Pickle(file.text(), "fuzz.pkl");
  } catch (const orrery::Error&) {
  }
  return 0;
}
