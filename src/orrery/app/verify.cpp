#include <iostream>

#include "orrery/app/commands.h"
#include "orrery/app/requests.h"

namespace orrery::app {

int verify(const std::vector<std::string>& words, const Environment& environment) {
  return run_session("verify", words, environment, [&](const Session& session, config::Arguments& arguments) {
    auto view = progress_view(session, arguments.settings, environment);
    const auto requests = find_requests(session, arguments, environment);
    const auto engine = Engine::open(arguments.settings, arguments.plan, session.mesh());
    bool within = true;
    for (size_t i = 0; i < requests.size(); ++i) {
      view.begin(requests[i].name.value_or("request"), i, requests.size());
      EndIfStuck stuck;
      const auto all = engine->verify(requests[i], callbacks_for(view, stuck));
      view.end();
      if (!all.empty()) std::cout << to_string(session.factors()) << " and one rank\n" << to_string(all);
      for (const auto& a : all) within = within && a.within;
    }
    return within ? 0 : 1;
  });
}

}  // namespace orrery::app
