#pragma once
#include <string>

namespace orrery::app {

/// What the program knows from outside of its command line. The only place that reads environment variables.
struct Environment {
  std::string hub;             // Hugging Face's cache of published models
  std::string program_folder;  // where this executable lies
  int processes = 1;           // WORLD_SIZE, as torchrun sets it
  bool terminal = false;       // stderr is one
  int columns = 80;
};

Environment read_environment();

}  // namespace orrery::app
