#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::comm {

/// How many ranks each axis has, all ≥ 1.
struct MeshShape {
  int cfg = 1;      // guidance branches: 1 or 2
  int ring = 1;     // ring attention
  int ulysses = 1;  // head-split attention
  int size() const { return cfg * ring * ulysses; }
  bool operator==(const MeshShape&) const = default;
};

/// "cfg2 × ring1 × ulysses4"
std::string to_string(const MeshShape& shape);

/// Error of kind request if an axis is below 1 or there are more than two cfg ranks.
void validate(const MeshShape& shape);

/// The groups of a mesh, in the order in which they are made; Mesh has an accessor of each name.
inline constexpr std::array<std::string_view, 6> kAxes = {"cfg",      "ring",    "ulysses",
                                                          "sequence", "control", "world"};

/// The ranks of the group of kAxes[axis] that `rank` belongs to, in order. Rank r stands at
/// r = (cfg · rings + ring) · ulysses_size + ulysses: ulysses is the fastest axis, then ring, then cfg.
std::vector<int> members(const MeshShape& shape, size_t axis, int rank);

}  // namespace orrery::comm
