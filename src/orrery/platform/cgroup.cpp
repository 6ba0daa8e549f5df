#include "orrery/platform/cgroup.h"

#include <algorithm>
#include <fstream>

#include "orrery/base/error.h"

namespace orrery::platform {
namespace {

bool names(std::string_view controllers, std::string_view wanted) {
  for (size_t at = 0; at <= controllers.size();) {
    const size_t end = std::min(controllers.find(',', at), controllers.size());
    if (controllers.substr(at, end - at) == wanted) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::vector<std::string> cgroup_folders(std::string_view controller, const std::string& root) {
  std::vector<std::string> folders;
  std::ifstream in(root + "/proc/self/cgroup");
  // "0::/path" is version 2, "4:cpu,cpuacct:/path" version 1. A host may have both; each limit counts.
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !names(controllers, controller)) continue;
    const std::string mount =
        controllers.empty() ? root + "/sys/fs/cgroup" : concat(root, "/sys/fs/cgroup/", controller);
    // Inside a container the path may name folders of the host that are not mounted here: absent files limit
    // nothing.
    for (std::string path = line.substr(second + 1); path.size() > 1 && path[0] == '/';
         path.resize(path.rfind('/')))
      folders.push_back(mount + path);
    folders.push_back(mount);
  }
  return folders;
}

std::optional<int64_t> first_number(const std::string& path) {
  std::ifstream in(path);
  int64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

}  // namespace orrery::platform
