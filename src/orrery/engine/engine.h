#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "orrery/config/plan.h"
#include "orrery/config/request.h"
#include "orrery/config/settings.h"

namespace orrery {

/// Where a run is. Stages in order: "text", "encode", "denoise", "decode", "write"; steps is 0 where a stage
/// has none.
struct Progress {
  std::string stage;
  int64_t step = 0, steps = 0;
  double seconds = 0;  // since the stage began
};

/// Called on the thread that called run(). `cancelled` is asked at every step; true ends the run with an
/// Error of kind cancelled and leaves no file.
struct Callbacks {
  std::function<void(const Progress&)> progress;
  std::function<bool()> cancelled;
};

struct Output {
  std::vector<std::string> files;  // what was written, final names
  int64_t seed = 0;                // the one used (−1 in the request means random)
  int64_t evaluations = 0;         // network evaluations per branch
  std::vector<std::pair<std::string, double>> stage_seconds;
  std::string json;  // the resolved request and plan, versions, timings: what lies beside the output
};

/// A checkpoint, opened once, and the ranks that run it. One run at a time; open and run may be called on any
/// thread.
class Engine {
 public:
  virtual ~Engine() = default;

  /// Reads configurations and maps weights. Errors: checkpoint (incomplete or malformed), request (plan that
  /// does not fit), unsupported, resource.
  static std::unique_ptr<Engine> open(const config::Settings& settings, const config::Plan& plan);

  /// Makes what the request asks for and writes it under its final name only when it is complete. A failed
  /// run leaves the engine usable. Errors: request (before any work), cancelled, resource, internal
  /// (non-finite latents).
  virtual Output run(const config::Request& request, const Callbacks& callbacks = {}) = 0;
};

}  // namespace orrery
