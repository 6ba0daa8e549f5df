#pragma once
#include "orrery/comm/mesh.h"

namespace orrery::comm {

/// The ranks of `mesh`, all on one guidance branch: Ulysses over the whole run. Uses the groups of `mesh`,
/// which outlives it; they are used through one of the two at a time.
Mesh one_branch(const Mesh& mesh);

}  // namespace orrery::comm
