#pragma once
#include <string>

#include "orrery/base/error.h"

namespace orrery::app {

/// "orrery: request error: MESSAGE", on one line whatever the message quotes; with the log's
/// prefix before it.
std::string error_line(const Error& error);

}  // namespace orrery::app
