#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "orrery/base/tensor.h"
#include "orrery/comm/mesh.h"
#include "orrery/config/plan.h"

namespace orrery::parallel {

/// Finds the fastest of the ways to exchange heads that a plan leaves open. All ways give the same bits, so
/// the first attention calls of a run are the trials: they try each way in turn, several times. Then the
/// ranks tell each other their times over the control group, the slowest rank's time counts, and all of them
/// keep the same way for that shape from then on; rank 0 logs it. Each rank has its own, used by its thread;
/// every rank of the run makes the same calls.
class Tuning {
 public:
  /// Whatever the time of a call depends on, the same on every rank.
  using Shape = std::vector<int64_t>;
  using Attend = std::function<std::vector<Tensor>(const config::Chunks&)>;

  /// Errors as config::alltoall_candidates.
  explicit Tuning(const config::Plan& plan) : candidates_(config::alltoall_candidates(plan)) {}

  /// What `attend` returns; it is called once, with the chosen way or with one that is to be timed.
  std::vector<Tensor> run(const comm::Mesh& mesh, const Shape& shape, const Attend& attend);

  /// The way that was found for a shape, or nothing as long as trials go on.
  std::optional<config::Chunks> choice(const Shape& shape) const;

  /// Forgets everything: after a failed run, since ranks may have stopped at different calls.
  void forget() { trials_.clear(); }

 private:
  struct Trial {
    size_t calls = 0;
    std::vector<double> seconds;  // the best time of each candidate on this rank
    std::optional<config::Chunks> choice;
  };

  config::Chunks choose(const comm::Mesh& mesh, const Shape& shape, const Trial& trial) const;

  std::vector<config::Chunks> candidates_;
  std::map<Shape, Trial> trials_;
};

}  // namespace orrery::parallel
