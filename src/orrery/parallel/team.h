#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/base/tensor.h"
#include "orrery/comm/run_ranks.h"
#include "orrery/parallel/context.h"
#include "orrery/parallel/tuning.h"

namespace orrery::parallel {

/// The mesh of a factorisation, and back.
comm::MeshShape mesh_shape(const config::Factors& factors);
config::Factors factors_of(const comm::MeshShape& shape);

/// The ranks that run a model together: threads of this process, which share its weights and cores, or
/// processes of which this is one. Used by one thread at a time. With processes, every one of them makes the
/// same calls.
class Team {
 public:
  /// Ranks that are threads. threads: cores for all of them; each rank uses at least one.
  Team(const config::Plan& plan, const config::Factors& factors, int threads);

  /// Ranks that are processes; mesh: this one's. threads: cores that this process may use, of which it takes
  /// its share if others may use the same ones.
  Team(const config::Plan& plan, int threads, std::shared_ptr<const comm::Mesh> mesh);

  ~Team();
  Team(Team&&) noexcept;

  const config::Plan& plan() const { return plan_; }
  int ranks() const { return shape_.size(); }

  /// Cores for what runs once per process.
  int threads() const { return threads_; }

  /// The group over the processes of the run: what runs once per process (text, VAE) is shared over it. Of
  /// one member where ranks are threads.
  comm::Group& processes() const;

  /// Whether this process is the run's first: the one that gets pixels and writes.
  bool leads() const;

  /// The same ranks, for decisions: on the CPU.
  comm::Group& control() const;

  /// The guidance branch that the ranks of this process evaluate; nothing if they evaluate both.
  std::optional<int> branch() const;

  /// The team for a request that evaluates so many branches, 1 or 2: for one branch all ranks of a cfg mesh
  /// share its sequence. Lives as long as this team.
  const Team& for_branches(int branches) const;

  /// Runs fn on every rank of this process at once and returns what the call on this thread returned (with
  /// threads: rank 0's). When a rank throws, the others stop at their next exchange and the first error is
  /// thrown here; with threads, `failed` hears it at once (comm::run_ranks).
  Tensor run(const std::function<Tensor(const Context&)>& fn, const comm::OnFailure& failed = {}) const;

  /// Says that this process makes no more exchanges because of `reason`: the others end, too. Nothing where
  /// ranks are threads.
  void fail(std::string_view reason) const;

 private:
  struct OneBranch {};
  Team(const Team& whole, OneBranch);

  config::Plan plan_;
  comm::MeshShape shape_;
  int threads_;
  std::shared_ptr<const comm::Mesh> mesh_;  // of this process; null where ranks are threads
  bool one_branch_ = false;
  mutable std::vector<Tuning> tuning_;      // of each rank of this process; kept from run to run
  mutable std::unique_ptr<Team> sequence_;  // for_branches(1)
};

/// Does anybody say yes? Asked once per process, on the thread that called Team::run.
bool any(const Context& ctx, const std::function<bool()>& ask);

/// The largest of the ranks' values, on every rank.
int64_t largest(const Context& ctx, int64_t value);

}  // namespace orrery::parallel
