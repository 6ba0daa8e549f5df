#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orrery/comm/run_ranks.h"
#include "orrery/config/plan.h"
#include "orrery/config/request.h"
#include "orrery/config/settings.h"
#include "orrery/engine/verify.h"

namespace orrery {

/// Where a run is. Stages in order: "text", "encode", "denoise", "decode", "write"; steps is 0 where a stage
/// has none.
struct Progress {
  std::string stage;
  int64_t step = 0, steps = 0;
  double seconds = 0;  // since the stage began
};

/// Called on the thread that called run(). `cancelled` is asked at every step; true ends the run with an
/// Error of kind cancelled and leaves no file. `written` belongs to the run: called where the files were
/// written, by rank 0; what it throws is the run's error. With ranks that are processes each has its own
/// callbacks, and any of them may cancel. `failed` hears at once, on any thread, that a rank that is a thread
/// has failed; the others are then inside their computations, however long those take, and run() throws the
/// same error when they have ended.
struct Callbacks {
  std::function<void(const Progress&)> progress;
  std::function<bool()> cancelled;
  std::function<void(const struct Output&)> written = {};
  comm::OnFailure failed = {};
};

struct Output {
  std::vector<std::string> files;  // what was written (by rank 0), final names
  int64_t seed = 0;                // the one used (−1 in the request means random)
  int64_t evaluations = 0;         // network evaluations per branch
  std::vector<std::pair<std::string, double>> stage_seconds;
  std::string json;  // the resolved request and plan, versions, timings: what lies beside the output
};

/// A checkpoint, opened once, and the ranks that run it. One run at a time; open and run may be called on any
/// thread. Where ranks are processes, every one of them makes the same calls: what they ask for is compared,
/// an error that one finds is thrown by all (comm::AgreedError; the engine stays usable), and one that
/// befalls a single rank ends the run on all of them (kind peer on the others).
class Engine {
 public:
  virtual ~Engine() = default;

  /// Reads configurations and maps weights. Errors: checkpoint (incomplete or malformed), request (plan that
  /// does not fit), unsupported, resource.
  /// mesh: this process's, where ranks are processes; else ranks are threads.
  static std::unique_ptr<Engine> open(const config::Settings& settings, const config::Plan& plan,
                                      std::shared_ptr<const comm::Mesh> mesh = nullptr);

  /// Whether it makes pictures, not videos.
  virtual bool makes_pictures() const = 0;

  /// Refuses what run() would refuse before it works: values, files that cannot be read, a place that cannot
  /// be written. Loads no weights.
  virtual void check(const config::Request& request) const = 0;

  /// Makes what the request asks for and writes it under its final name only when it is complete. A failed
  /// run leaves the engine usable. Errors: request (before any work), cancelled, resource, internal
  /// (non-finite latents).
  virtual Output run(const config::Request& request, const Callbacks& callbacks = {}) = 0;

  /// Makes what the request asks for twice, on the engine's ranks and on one, writes nothing, and says how
  /// near they are: text, first blocks, each step, pixels, latents, frames. On rank 0; elsewhere nothing is
  /// returned. Errors as run().
  virtual std::vector<Agreement> verify(const config::Request& request, const Callbacks& callbacks = {}) = 0;
};

}  // namespace orrery
