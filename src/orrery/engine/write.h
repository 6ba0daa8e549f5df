#pragma once
#include <string>
#include <vector>

#include "orrery/config/request.h"
#include "orrery/pipeline/predict.h"

namespace orrery {

/// The file of a completed request: its `output`, or output.mp4 (output.jpg for one frame). Error of kind
/// request if its kind cannot hold the result.
std::string output_path(const config::Request& request);

/// Makes the folders above `path` and proves that a file can be written there. Errors: request (a component
/// is a file, no permission), resource (disk full).
void check_writable(const std::string& path);

/// Writes frames and, where asked, latents, each aside first; returns the files. Errors of media/write.h.
std::vector<std::string> write(const config::Request& request, const pipeline::Video& video);

}  // namespace orrery
