#include "orrery/parallel/tuning.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/tensor.h>

#include <limits>
#include <sstream>

#include "orrery/base/clock.h"
#include "orrery/base/log.h"
#include "orrery/comm/collectives.h"

namespace orrery::parallel {
namespace {

// The first round of trials pays for fresh memory; of the others the best counts, for other programs disturb.
constexpr size_t kRounds = 4;
constexpr double kWorthTelling = 1e-3;  // seconds of an attention whose way is logged
// A way that is not clearly faster than "off" is noise, and needs more exchanges.
constexpr double kLeastGain = 0.03;

/// The slowest rank's time of each candidate.
std::vector<double> slowest(comm::Group& group, const std::vector<double>& seconds) {
  const Tensor mine = at::tensor(seconds, at::kDouble).unsqueeze(0);
  const std::vector<int64_t> one_row(static_cast<size_t>(group.size()), 1);
  const Tensor all = comm::all_gather(group, mine, 0, one_row).amax(0);
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

}  // namespace

std::vector<Tensor> Tuning::run(const comm::Mesh& mesh, const Shape& shape, const Attend& attend) {
  if (candidates_.size() == 1) return attend(candidates_[0]);
  Trial& trial = trials_[shape];
  if (trial.choice) return attend(*trial.choice);
  trial.seconds.resize(candidates_.size(), std::numeric_limits<double>::infinity());
  const size_t candidate = trial.calls % candidates_.size();
  const Stopwatch watch;
  auto result = attend(candidates_[candidate]);
  if (trial.calls >= candidates_.size())
    trial.seconds[candidate] = std::min(trial.seconds[candidate], watch.seconds());
  if (++trial.calls == kRounds * candidates_.size()) trial.choice = choose(mesh, shape, trial);
  return result;
}

std::optional<config::Chunks> Tuning::choice(const Shape& shape) const {
  if (candidates_.size() == 1) return candidates_[0];
  const auto found = trials_.find(shape);
  return found == trials_.end() ? std::nullopt : found->second.choice;
}

config::Chunks Tuning::choose(const comm::Mesh& mesh, const Shape& shape, const Trial& trial) const {
  const auto seconds = slowest(mesh.control(), trial.seconds);
  size_t best = 0;
  for (size_t i = 1; i < seconds.size(); ++i)
    if (seconds[i] < seconds[best] && seconds[i] < (1 - kLeastGain) * seconds[0]) best = i;
  if (mesh.rank() == 0 && seconds[0] >= kWorthTelling) {
    std::ostringstream times;
    times.precision(3);
    for (size_t i = 0; i < seconds.size(); ++i)
      times << (i ? ", " : "") << to_string(candidates_[i]) << ' ' << seconds[i] * 1e3 << " ms";
    log::info("all-to-all in chunks: ", to_string(candidates_[best]), " for attention over ", shape.front(),
              " tokens (", times.str(), ")");
  }
  return candidates_[best];
}

}  // namespace orrery::parallel
