#include <iostream>

#include "orrery/app/commands.h"
#include "orrery/app/report.h"
#include "orrery/platform/memory.h"

int main(int argc, char** argv) {
  orrery::platform::tune_malloc();
  try {
    return orrery::app::run({argv + 1, argv + argc});
  } catch (...) {
    const orrery::Error error = orrery::current_error();
    std::cerr << orrery::app::error_line(error) << std::endl;
    return exit_code(error.kind());
  }
}
