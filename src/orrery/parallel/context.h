#pragma once
#include "orrery/comm/mesh.h"
#include "orrery/config/plan.h"

namespace orrery::parallel {

/// What one rank knows of the run that it is part of; passed first and by const reference everywhere.
/// Outlived by what it names.
struct Context {
  const comm::Mesh& mesh;
  const config::Plan& plan;
};

}  // namespace orrery::parallel
