#pragma once
#include <string>
#include <vector>

#include "orrery/config/request.h"
#include "orrery/pipeline/predict.h"

namespace orrery {

/// The file of a completed request: its `output`, or output.mp4 (output.jpg for one frame). Error of kind
/// request if its kind cannot hold the result.
std::string output_path(const config::Request& request);

/// Makes the folders above `path`, proves that a file can be written there and that `bytes` will fit. Errors:
/// request (a component is a file, no permission), resource (not enough space).
void check_writable(const std::string& path, int64_t bytes);

/// The same for every file of a completed request, going by its size and what its format makes of pixels.
void check_writable(const config::Request& request);

/// Writes frames and, where asked, latents, each aside first; returns the files. Errors of media/write.h.
std::vector<std::string> write(const config::Request& request, const pipeline::Video& video);

}  // namespace orrery
