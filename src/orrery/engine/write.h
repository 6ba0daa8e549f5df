#pragma once
#include <string>
#include <vector>

#include "orrery/config/request.h"
#include "orrery/config/settings.h"
#include "orrery/pipeline/pipeline.h"

namespace orrery {

/// The file of a completed request: its `output`, or output.mp4 (output.jpg for one frame, output.png for a
/// picture). Error of kind request if its kind cannot hold the result.
std::string output_path(const config::Request& request);

/// Makes the folders above `path`, proves that a file can be written there and that `bytes` will fit. Errors:
/// request (a component is a file, no permission), resource (not enough space).
void check_writable(const std::string& path, int64_t bytes);

/// The same for every file of a completed request, going by its size and what its format makes of pixels.
void check_writable(const config::Request& request);

/// The key under which a PNG keeps what it was made from.
inline constexpr const char* kRecordKey = "orrery";

/// Writes frames and, where asked, latents, each aside first; returns the files. Films are NAME_SUFFIX.mp4
/// beside NAME.mp4, and NAME.txt has the prompt (spec cosmos-transfer2.5 §6.4). Several pictures get
/// numbers: NAME-1.png, NAME-2.png, or 000000.png and so on in a folder. A PNG picture keeps under kRecordKey
/// the request that makes it again, alone: {"request": …, "settings": …, "versions": …}. Errors of
/// media/write.h.
std::vector<std::string> write(const config::Request& request, const pipeline::Media& media,
                               const config::Settings& settings);

}  // namespace orrery
