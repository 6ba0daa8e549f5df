#include <iostream>
#include <nlohmann/json.hpp>

#include "orrery/app/commands.h"
#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/value.h"
#include "orrery/engine/machine.h"

namespace orrery::app {
namespace {

struct Command {
  const char* name;
  const char* help;
  int (*run)(const std::vector<std::string>& words, const Environment& environment);
};
constexpr Command kCommands[] = {
    {"generate", "make a video from a prompt, an image or a clip", generate},
    {"verify", "make it on many ranks and on one, and say how near they are", verify},
    {"plan", "say what each way of sharing the work among N ranks costs", plan},
    {"inspect", "say what a checkpoint is", inspect},
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Command& command : kCommands) all.emplace_back(command.name);
  return all;
}

void print_help() {
  std::cout << "usage: orrery COMMAND [OPTIONS]\n\n";
  for (const Command& command : kCommands)
    std::cout << "  " << command.name << std::string(12 - std::string(command.name).size(), ' ')
              << command.help << "\n";
  std::cout
      << "\norrery COMMAND --help lists the options of a command; orrery --version prints the version.\n";
}

}  // namespace

int run(const std::vector<std::string>& words) {
  require(!words.empty(), "expected a command: ", join(names()), "; orrery --help says more");
  const std::string& name = words[0];
  if (name == "--help" || name == "-h" || name == "help") return print_help(), 0;
  if (name == "--version") {
    const auto parts = versions();
    for (const auto& [part, version] : parts.items())
      std::cout << part << " " << version.get<std::string>() << "\n";
    return 0;
  }
  for (const Command& command : kCommands)
    if (name == command.name) return command.run({words.begin() + 1, words.end()}, read_environment());
  fail(ErrorKind::kRequest, "unknown command ", config::in_quotes(name), did_you_mean(name, names()),
       "; expected ", join(names()));
}

}  // namespace orrery::app
