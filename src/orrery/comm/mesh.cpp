#include "orrery/comm/mesh.h"

#include <utility>

#include "orrery/comm/solo.h"
#include "orrery/comm/threads.h"

namespace orrery::comm {

Mesh::Mesh(MeshShape shape, int rank, Groups groups, std::shared_ptr<Ranks> ranks)
    : shape_(shape), rank_(rank), ranks_(std::move(ranks)), groups_(std::move(groups)) {}

std::string Mesh::fail(std::string_view reason) const { return ranks_->fail(rank_, reason); }

void Mesh::finish() const { ranks_->finish(rank_); }

std::vector<Mesh> make_thread_meshes(const MeshShape& shape, const Decorate& decorate) {
  validate(shape);
  const auto ranks = std::make_shared<ThreadRanks>(shape.size());
  std::vector<Mesh::Groups> groups(static_cast<size_t>(shape.size()));
  for (size_t axis = 0; axis < kAxes.size(); ++axis)
    for (int r = 0; r < shape.size(); ++r) {
      const auto of_axis = members(shape, axis, r);
      if (of_axis[0] != r) continue;  // made with the first of them
      auto views = of_axis.size() == 1 ? std::vector<std::unique_ptr<Group>>(1)
                                       : make_thread_group(ranks, std::string(kAxes[axis]), of_axis);
      for (size_t i = 0; i < views.size(); ++i) {
        auto view = views[i] ? std::move(views[i]) : std::make_unique<Solo>();
        if (decorate) view = decorate(of_axis[i], kAxes[axis], std::move(view));
        groups[static_cast<size_t>(of_axis[i])][axis] = std::move(view);
      }
    }
  std::vector<Mesh> meshes;
  for (int r = 0; r < shape.size(); ++r)
    meshes.emplace_back(shape, r, std::move(groups[static_cast<size_t>(r)]), ranks);
  return meshes;
}

}  // namespace orrery::comm
