#include "orrery/parallel/team.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "orrery/comm/collectives.h"
#include "orrery/comm/one_branch.h"
#include "orrery/comm/solo.h"
#include "orrery/platform/cpu.h"

namespace orrery::parallel {
namespace {

/// Every rank's number.
Tensor numbers(comm::Group& group, int64_t mine) {
  return comm::all_gather(group, at::scalar_tensor(mine, at::kLong).view({1}), 0,
                          std::vector<int64_t>(static_cast<size_t>(group.size()), 1));
}

/// How many processes may run on exactly the cores that this one may run on, itself included.
int sharers(const comm::Mesh& mesh) {
  const auto cores = static_cast<int64_t>(platform::core_set());
  return static_cast<int>((numbers(mesh.control(), cores) == cores).sum().item<int64_t>());
}

comm::Group& alone() {
  static comm::Solo solo;  // keeps nothing between calls
  return solo;
}

}  // namespace

comm::MeshShape mesh_shape(const config::Factors& f) {
  return {static_cast<int>(f.cfg), static_cast<int>(f.ring), static_cast<int>(f.ulysses)};
}

config::Factors factors_of(const comm::MeshShape& shape) {
  return {.cfg = shape.cfg, .ulysses = shape.ulysses, .ring = shape.ring};
}

Team::Team(const config::Plan& plan, const config::Factors& factors, int threads)
    : plan_(plan),
      shape_(mesh_shape(factors)),
      threads_(threads),
      tuning_(static_cast<size_t>(shape_.size()), Tuning(plan)) {}

Team::Team(const config::Plan& plan, int threads, std::shared_ptr<const comm::Mesh> mesh)
    : plan_(plan),
      shape_(mesh->shape()),
      threads_(std::max(1, threads / sharers(*mesh))),
      mesh_(std::move(mesh)),
      tuning_(1, Tuning(plan)) {}

Team::Team(const Team& whole, OneBranch)
    : plan_(whole.plan_),
      shape_(whole.shape_),
      threads_(whole.threads_),
      mesh_(whole.mesh_ ? std::make_shared<comm::Mesh>(comm::one_branch(*whole.mesh_)) : nullptr),
      one_branch_(true),
      tuning_(whole.tuning_.size(), Tuning(plan_)) {}

Team::~Team() = default;
Team::Team(Team&&) noexcept = default;

comm::Group& Team::processes() const { return mesh_ ? mesh_->world() : alone(); }

bool Team::leads() const { return processes().rank() == 0; }

comm::Group& Team::control() const { return mesh_ ? mesh_->control() : alone(); }

std::optional<int> Team::branch() const {
  if (!mesh_ || mesh_->cfg().size() == 1) return std::nullopt;
  return mesh_->cfg().rank();
}

const Team& Team::for_branches(int branches) const {
  if (branches == 2 || shape_.cfg == 1) return *this;
  if (!sequence_) sequence_.reset(new Team(*this, OneBranch()));
  return *sequence_;
}

Tensor Team::run(const std::function<Tensor(const Context&)>& fn, const comm::OnFailure& failed) const {
  try {
    if (mesh_) return fn(Context{*mesh_, plan_, tuning_[0]});
    Tensor result;
    comm::run_ranks(
        comm::make_thread_meshes(shape_), std::max(1, threads_ / ranks()),
        [&](const comm::Mesh& mesh) {
          Tuning& tuning = tuning_[static_cast<size_t>(mesh.rank())];
          const bool caller = mesh.rank() == 0;
          Tensor mine = one_branch_ ? fn(Context{comm::one_branch(mesh), plan_, tuning, caller})
                                    : fn(Context{mesh, plan_, tuning, caller});
          if (caller) result = std::move(mine);
        },
        failed);
    return result;
  } catch (...) {
    for (Tuning& tuning : tuning_) tuning.forget();
    throw;
  }
}

void Team::fail(std::string_view reason) const {
  if (mesh_) mesh_->fail(reason);
}

bool any(const Context& ctx, const std::function<bool()>& ask) {
  return largest(ctx, ctx.caller && ask() ? 1 : 0) != 0;
}

int64_t largest(const Context& ctx, int64_t value) {
  return numbers(ctx.mesh.control(), value).max().item<int64_t>();
}

}  // namespace orrery::parallel
