#include "orrery/pipeline/cosmos_checkpoint.h"

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"

namespace orrery::pipeline {

SchedulerConfig read_scheduler_config(const std::string& path) {
  const JsonConfig json(path);
  const auto unsupported = [&](const char* field, const std::string& wanted) {
    fail(ErrorKind::kUnsupported, path, ": ", field, " is ",
         json.json().value(field, nlohmann::json()).dump(), "; Cosmos uses ", wanted);
  };
  if (json.get("_class_name", std::string("UniPCMultistepScheduler")) != "UniPCMultistepScheduler")
    unsupported("_class_name", "UniPCMultistepScheduler");
  if (!json.get("use_flow_sigmas", false)) unsupported("use_flow_sigmas", "true");
  if (json.get("prediction_type", std::string()) != "flow_prediction")
    unsupported("prediction_type", "flow_prediction");
  if (json.get("solver_order", 2) != 2) unsupported("solver_order", "2");
  if (json.get("solver_type", std::string("bh2")) != "bh2") unsupported("solver_type", "bh2");
  SchedulerConfig c;
  c.karras = json.get("use_karras_sigmas", false);
  c.sigma_max = json.get("sigma_max", c.sigma_max);
  c.sigma_min = json.get("sigma_min", c.sigma_min);
  c.shift = json.get("flow_shift", 1.0);
  if (!(c.sigma_min > 0 && c.sigma_max > c.sigma_min)) unsupported("sigma_min", "0 < sigma_min < sigma_max");
  return c;
}

bool CosmosCheckpoint::official(const config::Request& request) const {
  const auto chosen = request.reference ? request.reference : limits.defaults.reference;
  return chosen == config::Reference::kOfficial;
}

sample::Schedule CosmosCheckpoint::schedule(const config::Request& request) const {
  const int64_t n = config::evaluations(request, scheduler.karras);
  if (scheduler.karras) return sample::karras_flow(n, scheduler.sigma_max, scheduler.sigma_min);
  return request.reference == config::Reference::kOfficial ? sample::shifted_linear(n, scheduler.shift)
                                                           : sample::flow_shift(n, scheduler.shift);
}

}  // namespace orrery::pipeline
