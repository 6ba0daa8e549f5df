#include "orrery/base/error.h"

#include <new>

namespace orrery {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRequest:
      return "request";
    case ErrorKind::kCheckpoint:
      return "checkpoint";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kResource:
      return "resource";
    case ErrorKind::kPeer:
      return "peer";
    case ErrorKind::kCancelled:
      return "cancelled";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRequest:
      return 2;
    case ErrorKind::kCheckpoint:
      return 3;
    case ErrorKind::kUnsupported:
      return 4;
    case ErrorKind::kResource:
      return 5;
    case ErrorKind::kPeer:
      return 6;
    case ErrorKind::kCancelled:
      return 130;
    case ErrorKind::kInternal:
      return 70;
  }
  return 70;
}

Error::Error(ErrorKind kind, std::string message, std::string code)
    : kind_(kind), message_(std::move(message)), code_(std::move(code)), what_(message_) {}

Error& Error::with(std::string_view doing) {
  what_ += concat(" (while ", doing, ")");
  return *this;
}

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

}  // namespace orrery
