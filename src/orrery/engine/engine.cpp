#include "orrery/engine/engine.h"

#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "orrery/base/clock.h"
#include "orrery/base/error.h"
#include "orrery/comm/agreement.h"
#include "orrery/comm/collectives.h"
#include "orrery/config/json.h"
#include "orrery/engine/machine.h"
#include "orrery/engine/write.h"
#include "orrery/pipeline/catalog.h"
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

class PipelineEngine final : public Engine {
 public:
  PipelineEngine(const config::Settings& settings, const config::Plan& plan,
                 std::shared_ptr<const comm::Mesh> mesh)
      : settings_(settings),
        plan_(plan),
        factors_(mesh ? parallel::factors_of(mesh->shape()) : config::resolve(plan)),
        team_(make_team(plan, factors_, std::move(mesh))) {
    comm::compare(team_.control(), "version", versions().dump());
    comm::compare(team_.control(), "plan", to_json(plan).dump());
    together([&] { pipeline_ = pipeline::open(settings, compute_type(plan.dtype)); });
    comm::compare(team_.control(), "checkpoint", checkpoint().fingerprint);
  }

  bool makes_pictures() const override { return checkpoint().limits.pictures(); }

  void check(const config::Request& wanted) const override { (void)prepare(wanted); }

  Output run(const config::Request& wanted, const Callbacks& callbacks) override {
    return on_all<Output>([&] {
      const auto [request, given] = ready(wanted);
      return make(request, given, callbacks);
    });
  }

  std::vector<Agreement> verify(const config::Request& wanted, const Callbacks& callbacks) override {
    return on_all<std::vector<Agreement>>([&] {
      const auto [request, given] = ready(wanted);
      const Observed many = observe(team_, request, given, callbacks);
      Observed one;
      together([&, &request = request, &given = given] {
        if (writes()) one = observe({plan_, {}, team_.threads()}, request, given, callbacks);
      });
      return writes() ? agreements(one, many, parallel::mesh_shape(factors_), checkpoint().dtype)
                      : std::vector<Agreement>();
    });
  }

 private:
  /// A request with nothing left open, and the pixels that it gives.
  struct Ready {
    config::Request request;
    pipeline::Given given;
  };

  const pipeline::Checkpoint& checkpoint() const { return pipeline_->checkpoint(); }

  static parallel::Team make_team(const config::Plan& plan, const config::Factors& factors,
                                  std::shared_ptr<const comm::Mesh> mesh) {
    const int cores = plan.threads > 0 ? static_cast<int>(plan.threads) : platform::detect_cpu().cores;
    if (mesh) return {plan, cores, std::move(mesh)};
    return {plan, factors, cores};
  }

  /// Runs a request. If this process alone fails, the others hear of it.
  template <class T>
  T on_all(const std::function<T()>& fn) const {
    const c10::InferenceMode inference;
    const platform::ThreadsGuard cores(team_.threads());
    try {
      return fn();
    } catch (const comm::AgreedError&) {
      throw;
    } catch (...) {
      team_.fail(current_error().what());
      throw;
    }
  }

  bool writes() const { return team_.control().rank() == 0; }

  void together(const std::function<void()>& fn) const { comm::together(team_.control(), fn); }

  Ready prepare(const config::Request& wanted) const {
    Ready ready;
    auto& request = ready.request;
    together([&] {
      const auto& limits = checkpoint().limits;
      request = config::complete(wanted, limits);
      config::validate(request, limits, plan_);
      ready.given = pipeline_->read_given(request);
      request.output = output_path(request);
      if (writes()) check_writable(request);
    });
    comm::compare(team_.control(), "request", to_json(request).dump());
    if (request.seed == -1)
      request.seed = comm::agree(team_.control(), static_cast<int64_t>(std::random_device()()));
    return ready;
  }

  /// What prepare() gives, with the weights that it needs in their place.
  Ready ready(const config::Request& wanted) {
    Ready all = prepare(wanted);
    together([&] { pipeline_->load(all.request, plan_.weights); });
    return all;
  }

  static pipeline::Hooks hooks(Stages& stages, const Callbacks& callbacks) {
    pipeline::Hooks hooks;
    hooks.progress = [&](const std::string& stage, int64_t step, int64_t steps) {
      stages.report(stage, step, steps);
    };
    hooks.cancelled = callbacks.cancelled;
    hooks.failed = callbacks.failed;
    return hooks;
  }

  Observed observe(const parallel::Team& team, const config::Request& request, const pipeline::Given& given,
                   const Callbacks& callbacks) const {
    Observed seen;
    Stages stages(callbacks);
    auto watching = hooks(stages, callbacks);
    watching.observe = [&](const std::string& what, const Tensor& value) {
      seen.emplace_back(what, value.clone());
    };
    auto media = pipeline_->make(team, request, given, watching);
    seen.emplace_back("latents", media.latents);
    auto pixels = std::move(media.frames.rgb);
    for (int64_t k = 0; !media.films.empty() && k < media.films[0].parts; ++k) {
      const auto part = media.films[0].part(k);
      pixels.insert(pixels.end(), part.rgb.begin(), part.rgb.end());
    }
    seen.emplace_back("frames", at::tensor(at::ArrayRef<uint8_t>(pixels)));
    return seen;
  }

  Output make(const config::Request& request, const pipeline::Given& given, const Callbacks& callbacks) {
    Stages stages(callbacks);
    auto watching = hooks(stages, callbacks);
    watching.keeps_chunks = true;
    const auto media = pipeline_->make(team_, request, given, watching);
    stages.report("write", 0, 0);
    Output output;
    output.seed = *request.seed;
    output.evaluations = media.evaluations;
    together([&] {
      if (!writes()) return;
      output.files = write(request, media, settings_);
      if (media.written) media.written();
      output.stage_seconds = stages.finish();
      output.json = describe(request, output);
      if (callbacks.written) callbacks.written(output);
    });
    return output;
  }

  std::string describe(const config::Request& request, const Output& output) const {
    Json times = Json::object();
    for (const auto& [stage, seconds] : output.stage_seconds) times[stage] = seconds;
    Json plan = config::to_json(plan_);
    plan["parallel"] = config::to_string(factors_);
    plan["dtype"] = name_of(checkpoint().dtype);
    plan["weights"] = checkpoint().storage == weights::Storage::kMapped ? "mapped" : "widened";
    plan["ranks"] = team_.ranks();
    plan["threads"] = team_.threads();
    return Json{{"request", config::to_json(request)},
                {"plan", plan},
                {"model", checkpoint().layout.transformer},
                {"files", output.files},
                {"evaluations", output.evaluations},
                {"seconds", times},
                {"versions", versions()}}
        .dump(2, ' ', false, Json::error_handler_t::replace);  // paths may be any bytes
  }

  config::Settings settings_;
  config::Plan plan_;
  config::Factors factors_;
  parallel::Team team_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
};

}  // namespace

std::unique_ptr<Engine> Engine::open(const config::Settings& settings, const config::Plan& plan,
                                     std::shared_ptr<const comm::Mesh> mesh) {
  return std::make_unique<PipelineEngine>(settings, plan, std::move(mesh));
}

}  // namespace orrery
