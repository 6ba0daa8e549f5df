#include <iostream>

#include "orrery/app/commands.h"
#include "orrery/app/model_path.h"
#include "orrery/config/flags.h"
#include "orrery/config/spec_file.h"
#include "orrery/engine/plans.h"

namespace orrery::app {

int plan(const std::vector<std::string>& words, const Environment& environment) {
  auto arguments = config::parse_arguments(words, "plan");
  if (!arguments.help.empty()) {
    std::cout << arguments.help;
    return 0;
  }
  config::Settings& settings = arguments.settings;
  settings = find_model(settings, environment.hub, environment.program_folder, /*needs_text=*/false);
  if (!arguments.request.prompt) arguments.request.prompt = "a prompt";  // costs do not depend on it
  for (const auto& request : config::read_requests(settings.input, arguments.request))
    std::cout << plans(settings, arguments.plan, request, settings.json);
  return 0;
}

}  // namespace orrery::app
