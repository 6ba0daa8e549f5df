#include "orrery/comm/mesh_shape.h"

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

/// Equal for the ranks that share the group of this axis.
int key(const MeshShape& shape, std::string_view axis, int rank) {
  const int u = shape.ulysses, branch = shape.ring * u;
  if (axis == "cfg") return rank % branch;
  if (axis == "ring") return rank / branch * u + rank % u;
  if (axis == "ulysses") return rank / u;
  if (axis == "sequence") return rank / branch;
  return 0;
}

}  // namespace

std::string to_string(const MeshShape& shape) {
  return concat("cfg", shape.cfg, " × ring", shape.ring, " × ulysses", shape.ulysses);
}

void validate(const MeshShape& shape) {
  require(shape.cfg >= 1 && shape.ring >= 1 && shape.ulysses >= 1,
          "a mesh needs at least one rank on each axis, got ", to_string(shape));
  require(shape.cfg <= 2, "there are two guidance branches: expected 1 or 2 cfg ranks, got ", shape.cfg);
}

std::vector<int> members(const MeshShape& shape, size_t axis, int rank) {
  std::vector<int> found;
  for (int r = 0; r < shape.size(); ++r)
    if (key(shape, kAxes.at(axis), r) == key(shape, kAxes[axis], rank)) found.push_back(r);
  return found;
}

}  // namespace orrery::comm
