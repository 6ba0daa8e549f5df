#pragma once
#include <vector>

#include "orrery/app/environment.h"
#include "orrery/app/progress.h"
#include "orrery/app/session.h"
#include "orrery/config/flags.h"

namespace orrery::app {

/// What the command line and the files that it names ask for, checked as far as that needs no checkpoint; the
/// settings then name files that exist. Every process of the session makes the call. Errors: of the files, of
/// config::validate, of find_model.
std::vector<config::Request> find_requests(const Session& session, config::Arguments& arguments,
                                           const Environment& environment);

/// Shows progress in the way that settings and terminal ask for; quiet on processes that do not lead.
ProgressView progress_view(const Session& session, const config::Settings& settings,
                           const Environment& environment);

/// For one run: shows its progress, cancels it when the program is interrupted, and ends the program if a
/// rank fails while others are stuck. The arguments outlive the run.
Callbacks callbacks_for(ProgressView& view, EndIfStuck& stuck);

}  // namespace orrery::app
