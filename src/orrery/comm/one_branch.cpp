#include "orrery/comm/one_branch.h"

#include <utility>

#include "orrery/comm/solo.h"

namespace orrery::comm {
namespace {

/// Another mesh's group.
class Borrowed final : public Group {
 public:
  explicit Borrowed(Group& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override {
    return group_.exchange(std::move(to), from);
  }

 private:
  Group& group_;
};

/// Says the same to the other mesh's ranks.
class SameRanks final : public Ranks {
 public:
  explicit SameRanks(const Mesh& mesh) : mesh_(mesh) {}
  std::string fail(int, std::string_view reason) override { return mesh_.fail(reason); }
  void finish(int) override { mesh_.finish(); }

 private:
  const Mesh& mesh_;
};

}  // namespace

Mesh one_branch(const Mesh& mesh) {
  const auto borrowed = [](Group& group) { return std::make_unique<Borrowed>(group); };
  Mesh::Groups groups = {std::make_unique<Solo>(), std::make_unique<Solo>(), borrowed(mesh.world()),
                         borrowed(mesh.world()),   borrowed(mesh.control()), borrowed(mesh.world())};
  return {{.cfg = 1, .ring = 1, .ulysses = mesh.size()},
          mesh.rank(),
          std::move(groups),
          std::make_shared<SameRanks>(mesh)};
}

}  // namespace orrery::comm
