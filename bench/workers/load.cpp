// How long a checkpoint takes to load, and what that costs. Prints {"open_seconds", "weights_seconds",
// "peak_bytes"}.
#include "bench/workers/worker.h"
#include "orrery/pipeline/predict_model.h"

namespace orrery::bench {
namespace {

void load(const std::string& model, at::ScalarType dtype) {
  config::Settings settings;
  settings.model = model;
  const Stopwatch watch;
  auto opened = pipeline::open_predict_model(settings, dtype);
  const double open_seconds = watch.seconds();
  pipeline::load_weights(opened, config::WeightStorage::kMapped);
  answer({{"open_seconds", open_seconds}, {"weights_seconds", watch.seconds() - open_seconds}});
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
  orrery::platform::tune_malloc();
  try {
    orrery::require(argc == 3, "usage: ", argv[0], " MODEL float32|bfloat16");
    orrery::bench::load(argv[1], argv[2] == std::string("bfloat16") ? at::kBFloat16 : at::kFloat);
    return 0;
  } catch (const orrery::Error& error) {
    std::cerr << error.what() << std::endl;
    return exit_code(error.kind());
  }
}
