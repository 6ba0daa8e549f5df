#include "orrery/app/report.h"

#include <new>

namespace orrery::app {

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kResource, "out of memory"};
  } catch (const std::exception& error) {
    const std::string_view what = error.what();
    return {ErrorKind::kInternal, std::string(what.substr(0, what.find('\n')))};
  } catch (...) {
    return {ErrorKind::kInternal, "unknown exception"};
  }
}

std::string error_line(const Error& error) {
  std::string line = concat("orrery: ", to_string(error.kind()), " error: ", error.what());
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return line;
}

}  // namespace orrery::app
