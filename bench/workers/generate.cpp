// End to end through the engine, as an embedder calls it. INPUT is a request as JSON; its time is that of all
// stages but writing the file.
#include <filesystem>

#include "bench/workers/worker.h"
#include "orrery/base/text.h"
#include "orrery/config/json.h"
#include "orrery/engine/engine.h"

namespace orrery::bench {
namespace {

Operations load(const Arguments& arguments) {
  config::Settings settings;
  settings.model = arguments.model;
  config::Plan plan;
  plan.dtype = arguments.dtype == at::kBFloat16 ? config::Dtype::kBFloat16 : config::Dtype::kFloat32;
  plan.threads = arguments.threads;
  auto request = config::from_json<config::Request>(nlohmann::json::parse(read_file(arguments.input)));
  const auto folder = std::filesystem::path(arguments.input).parent_path();
  request.output = (folder / "orrery.mp4").string();
  request.save_latents = (folder / "orrery.latents.safetensors").string();
  const std::shared_ptr<Engine> engine = Engine::open(settings, plan);
  return {{"generate", [=] {
             Result result;
             for (const auto& [stage, seconds] : engine->run(request).stage_seconds)
               if (stage != "write") result.seconds += seconds;
             result.output = weights::open_safetensors(*request.save_latents).at("latents");
             return result;
           }}};
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) { return orrery::bench::worker_main(argc, argv, orrery::bench::load); }
