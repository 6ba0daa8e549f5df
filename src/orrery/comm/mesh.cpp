#include "orrery/comm/mesh.h"

#include <map>
#include <utility>

#include "orrery/base/error.h"
#include "orrery/comm/solo.h"

namespace orrery::comm {
namespace {

/// The group of each rank over the ranks with the same `key`, in rank order.
std::vector<std::unique_ptr<Group>> axis_groups(const std::shared_ptr<ThreadRanks>& ranks, int size,
                                                std::string_view axis, const Decorate& decorate,
                                                const std::function<int(int)>& key) {
  std::map<int, std::vector<int>> members;
  for (int r = 0; r < size; ++r) members[key(r)].push_back(r);
  std::vector<std::unique_ptr<Group>> groups(static_cast<size_t>(size));
  for (const auto& [_, of_key] : members) {
    auto views = of_key.size() == 1 ? std::vector<std::unique_ptr<Group>>(1)
                                    : make_thread_group(ranks, std::string(axis), of_key);
    for (size_t i = 0; i < views.size(); ++i) {
      auto view = views[i] ? std::move(views[i]) : std::make_unique<Solo>();
      if (decorate) view = decorate(of_key[i], axis, std::move(view));
      groups[static_cast<size_t>(of_key[i])] = std::move(view);
    }
  }
  return groups;
}

}  // namespace

std::string to_string(const MeshShape& shape) {
  return concat("cfg", shape.cfg, " × ring", shape.ring, " × ulysses", shape.ulysses);
}

Mesh::Mesh(MeshShape shape, int rank, Groups groups, std::shared_ptr<ThreadRanks> threads)
    : shape_(shape), rank_(rank), groups_(std::move(groups)), threads_(std::move(threads)) {}

void Mesh::fail(std::string_view reason) const { comm::fail(*threads_, rank_, reason); }

void Mesh::finish() const { comm::finish(*threads_, rank_); }

std::vector<Mesh> make_thread_meshes(const MeshShape& shape, const Decorate& decorate) {
  require(shape.cfg >= 1 && shape.ring >= 1 && shape.ulysses >= 1,
          "a mesh needs at least one rank on each axis, got ", to_string(shape));
  require(shape.cfg <= 2, "there are two guidance branches: expected 1 or 2 cfg ranks, got ", shape.cfg);
  const int size = shape.size(), u = shape.ulysses, branch = shape.ring * shape.ulysses;
  const auto ranks = make_thread_ranks(size);
  const auto make = [&](std::string_view axis, const std::function<int(int)>& key) {
    return axis_groups(ranks, size, axis, decorate, key);
  };
  auto cfg = make("cfg", [&](int r) { return r % branch; });
  auto ring = make("ring", [&](int r) { return r / branch * u + r % u; });
  auto ulysses = make("ulysses", [&](int r) { return r / u; });
  auto sequence = make("sequence", [&](int r) { return r / branch; });
  auto control = make("control", [](int) { return 0; });
  auto world = make("world", [](int) { return 0; });
  std::vector<Mesh> meshes;
  for (int r = 0; r < size; ++r) {
    const auto i = static_cast<size_t>(r);
    meshes.emplace_back(shape, r,
                        Mesh::Groups{std::move(cfg[i]), std::move(ring[i]), std::move(ulysses[i]),
                                     std::move(sequence[i]), std::move(control[i]), std::move(world[i])},
                        ranks);
  }
  return meshes;
}

}  // namespace orrery::comm
