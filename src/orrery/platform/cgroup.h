#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::platform {

/// The folders that limit this process under a control-group controller ("memory", "cpu"), its own group
/// first and then the groups around it, for either version of the interface. `root` stands for "/", so that
/// tests can bring their own tree.
std::vector<std::string> cgroup_folders(std::string_view controller, const std::string& root);

/// The first number in a file, or nothing if the file is absent or starts with a word ("max").
std::optional<int64_t> first_number(const std::string& path);

}  // namespace orrery::platform
