#include "orrery/app/environment.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "orrery/app/place.h"

namespace orrery::app {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// As huggingface_hub does: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
/// ~/.cache/huggingface/hub.
std::string hub_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string cache = variable(name); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/huggingface/hub";
  return variable("HOME") + "/.cache/huggingface/hub";
}

int columns_of(int file) {
  winsize size{};
  return ::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Environment read_environment() {
  Environment environment;
  environment.hub = hub_folder();
  std::error_code error;
  environment.program_folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  environment.place = read_place(
      [](const std::string& name) {
        const char* value = std::getenv(name.c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
      },
      ::getppid());
  environment.terminal = ::isatty(STDERR_FILENO) != 0 && variable("TERM") != "dumb";
  environment.columns = columns_of(STDERR_FILENO);
  return environment;
}

}  // namespace orrery::app
