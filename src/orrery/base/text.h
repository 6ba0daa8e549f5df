#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// "a, b, c"
std::string join(std::span<const std::string> parts, std::string_view separator = ", ");

/// The known name with the smallest edit distance to `name` (case and -/_ do not count), or "" if none is
/// near.
std::string nearest(std::string_view name, std::span<const std::string> known);

/// " (did you mean X?)" or "".
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

/// "4.2 GB", decimal units as file managers print them.
std::string human_bytes(int64_t bytes);

/// "1 min 05 s", "3.4 s".
std::string human_seconds(double seconds);

/// Without leading and trailing white space.
std::string_view strip(std::string_view text);

/// The whole file, or an Error of kind request that names it and the system's reason.
std::string read_file(const std::string& path);

/// Replaces the file in one step: written as PATH.partial, synced, renamed. Error of kind resource if that
/// fails (disk full, no permission); PATH is then untouched and the partial file removed.
void write_file(const std::string& path, std::string_view content);

}  // namespace orrery
