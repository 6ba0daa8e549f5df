#pragma once
// One side of bench/compare: a process that loads a model once and then does what it is told, so that two
// engines can take turns on one machine. It prints one JSON object per line: {"ready", "seconds",
// "peak_bytes"} after loading, and for each line "OPERATION" or "OPERATION FILE" on its input {"seconds",
// "peak_bytes"}; FILE receives the result as the safetensors tensor `output`. Ends with its input.
#include <c10/core/InferenceMode.h>

#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "orrery/base/clock.h"
#include "orrery/base/error.h"
#include "orrery/platform/memory.h"
#include "orrery/platform/thread.h"
#include "orrery/weights/safetensors.h"

namespace orrery::bench {

/// PROGRAM MODEL INPUT DTYPE THREADS
struct Arguments {
  std::string model, input;
  at::ScalarType dtype = at::kFloat;
  int threads = 1;
};

struct Result {
  Tensor output;
  double seconds = 0;
};

using Operations = std::map<std::string, std::function<Result()>>;

/// The operation's time is the call's.
inline std::function<Result()> timed(std::function<Tensor()> call) {
  return [call = std::move(call)] {
    const Stopwatch watch;
    Tensor output = call();
    return Result{output, watch.seconds()};
  };
}

inline void answer(nlohmann::json object) {
  object["peak_bytes"] = platform::peak_rss();
  std::cout << object.dump() << std::endl;
}

inline void serve(const Operations& operations) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string name, file;
    words >> name >> file;
    require(operations.contains(name), "no operation ", name);
    const Result result = operations.at(name)();
    if (!file.empty()) weights::write_safetensors(file, {{"output", result.output.to(at::kFloat)}});
    answer({{"seconds", result.seconds}});
  }
}

/// main(): `load` gives the operations.
inline int worker_main(int argc, char** argv, const std::function<Operations(const Arguments&)>& load) {
  platform::tune_malloc();
  try {
    require(argc == 5, "usage: ", argv[0], " MODEL INPUT float32|bfloat16 THREADS");
    const Arguments arguments = {argv[1], argv[2],
                                 argv[3] == std::string("bfloat16") ? at::kBFloat16 : at::kFloat,
                                 std::stoi(argv[4])};
    const c10::InferenceMode inference;
    platform::set_threads(arguments.threads);
    const Stopwatch watch;
    const Operations operations = load(arguments);
    answer({{"ready", true}, {"seconds", watch.seconds()}});
    serve(operations);
    return 0;
  } catch (const Error& error) {
    std::cerr << error.what() << std::endl;
    return exit_code(error.kind());
  }
}

}  // namespace orrery::bench
