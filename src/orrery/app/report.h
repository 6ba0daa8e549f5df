#pragma once
#include <string>
#include <string_view>

#include "orrery/base/error.h"

namespace orrery::app {

/// The exception being handled as an Error: one of ours as it is, std::bad_alloc as resource, any other as
/// internal with its first line (libtorch appends a backtrace). To be called in a catch block.
Error current_error();

/// "orrery: request error: MESSAGE", on one line whatever the message quotes.
std::string error_line(const Error& error);

}  // namespace orrery::app
