#pragma once
#include <optional>
#include <string>

#include "orrery/comm/processes.h"

namespace orrery::app {

/// What the program knows from outside of its command line. The only place that reads environment variables.
struct Environment {
  std::string hub;                   // Hugging Face's cache of published models
  std::string program_folder;        // where this executable lies
  std::optional<comm::Place> place;  // among the processes that a launcher started together
  bool terminal = false;             // stderr is one
  int columns = 80;
};

/// Errors as read_place (place.h).
Environment read_environment();

}  // namespace orrery::app
