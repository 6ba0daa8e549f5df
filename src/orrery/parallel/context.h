#pragma once
#include "orrery/comm/mesh.h"
#include "orrery/config/plan.h"

namespace orrery::parallel {

class Tuning;

/// What one rank knows of the run that it is part of; passed first and by const reference everywhere.
/// Outlived by what it names.
struct Context {
  const comm::Mesh& mesh;
  const config::Plan& plan;
  Tuning& tuning;      // this rank's own
  bool caller = true;  // this rank runs on the thread that called Team::run
};

}  // namespace orrery::parallel
