#include "orrery/engine/engine.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "orrery/base/clock.h"
#include "orrery/base/error.h"
#include "orrery/config/json.h"
#include "orrery/engine/machine.h"
#include "orrery/engine/write.h"
#include "orrery/pipeline/given_frames.h"
#include "orrery/pipeline/predict.h"
#include "orrery/platform/cpu.h"
#include "orrery/platform/thread.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

/// Seconds of each stage, in order of first appearance (a long video comes back to each), and the caller's
/// progress.
class Stages {
 public:
  explicit Stages(const Callbacks& callbacks) : callbacks_(callbacks) {}

  void report(const std::string& stage, int64_t step, int64_t steps) {
    if (stage != stage_) begin(stage);
    if (callbacks_.progress) callbacks_.progress({stage, step, steps, watch_.seconds()});
  }

  const std::vector<std::pair<std::string, double>>& finish() {
    begin("");
    return times_;
  }

 private:
  void begin(const std::string& stage) {
    if (!stage_.empty()) {
      const auto known = std::find_if(times_.begin(), times_.end(),
                                      [&](const auto& entry) { return entry.first == stage_; });
      if (known == times_.end())
        times_.emplace_back(stage_, watch_.seconds());
      else
        known->second += watch_.seconds();
    }
    stage_ = stage;
    watch_ = {};
  }

  const Callbacks& callbacks_;
  std::string stage_;
  std::vector<std::pair<std::string, double>> times_;
  Stopwatch watch_;
};

class PredictEngine final : public Engine {
 public:
  PredictEngine(const config::Settings& settings, const config::Plan& plan)
      : plan_(plan),
        factors_(config::resolve(plan)),
        threads_(plan.threads > 0 ? static_cast<int>(plan.threads) : platform::detect_cpu().cores),
        model_(pipeline::open_predict_model(settings, compute_type(plan.dtype))),
        team_(plan, factors_, threads_) {}

  Output run(const config::Request& wanted, const Callbacks& callbacks) override {
    const c10::InferenceMode inference;
    const platform::ThreadsGuard cores(threads_);
    config::Request request = config::complete(wanted, model_.limits);
    if (request.seed == -1) request.seed = static_cast<int64_t>(std::random_device()());
    config::validate(request, model_.limits, plan_);
    request.output = output_path(request);
    check_writable(*request.output);
    if (request.save_latents) check_writable(*request.save_latents);
    const auto& reference = model_.reference(request);
    const auto given = pipeline::read_given_frames(request, reference);
    load();

    Stages stages(callbacks);
    pipeline::Hooks hooks;
    hooks.progress = [&](const std::string& stage, int64_t step, int64_t steps) {
      stages.report(stage, step, steps);
    };
    hooks.cancelled = callbacks.cancelled;
    const auto video = pipeline::predict(model_, reference, team_, request, given, hooks);
    stages.report("write", 0, 0);
    Output output;
    output.files = write(request, video);
    output.seed = *request.seed;
    output.evaluations = video.evaluations;
    output.stage_seconds = stages.finish();
    output.json = describe(request, output);
    return output;
  }

 private:
  void load() {
    if (loaded_) return;
    pipeline::load_weights(model_, plan_.weights);
    loaded_ = true;
  }

  std::string describe(const config::Request& request, const Output& output) const {
    Json times = Json::object();
    for (const auto& [stage, seconds] : output.stage_seconds) times[stage] = seconds;
    Json plan = config::to_json(plan_);
    plan["parallel"] = config::to_string(factors_);
    plan["dtype"] = name_of(model_.dtype);
    plan["weights"] = model_.storage == weights::Storage::kMapped ? "mapped" : "widened";
    plan["threads"] = threads_;
    return Json{{"request", config::to_json(request)},
                {"plan", plan},
                {"model", model_.layout.transformer},
                {"files", output.files},
                {"evaluations", output.evaluations},
                {"seconds", times},
                {"versions", versions()}}
        .dump(2, ' ', false, Json::error_handler_t::replace);  // paths may be any bytes
  }

  config::Plan plan_;
  config::Factors factors_;
  int threads_;
  pipeline::PredictModel model_;
  parallel::Team team_;
  bool loaded_ = false;
};

}  // namespace

std::unique_ptr<Engine> Engine::open(const config::Settings& settings, const config::Plan& plan) {
  return std::make_unique<PredictEngine>(settings, plan);
}

}  // namespace orrery
