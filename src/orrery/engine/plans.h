#pragma once
#include <string>

#include "orrery/config/plan.h"
#include "orrery/config/request.h"
#include "orrery/config/settings.h"

namespace orrery {

/// Every way of sharing a request among the plan's ranks that the plan leaves open: for each the bytes that
/// the busiest rank sends per step, its exchanges, the memory of a rank and by how much the busiest computes
/// more than the average; and which one a run would take. As text for people, or as one JSON object. Reads
/// headers only. Errors as Engine::open and Engine::check.
std::string plans(const config::Settings& settings, const config::Plan& plan, const config::Request& request,
                  bool json);

}  // namespace orrery
