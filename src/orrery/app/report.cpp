#include "orrery/app/report.h"

#include "orrery/base/log.h"

namespace orrery::app {

std::string error_line(const Error& error) {
  std::string line = concat(log::prefix(), "orrery: ", to_string(error.kind()), " error: ", error.what());
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return line;
}

}  // namespace orrery::app
