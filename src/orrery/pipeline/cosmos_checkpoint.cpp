#include "orrery/pipeline/cosmos_checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"
#include "orrery/models/load.h"
#include "orrery/models/qwen_vl/weights.h"

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

Work cosmos_work(const CosmosCheckpoint& checkpoint, const cosmos::TransformerConfig& m,
                 const config::Request& request, int64_t frames, double skip_guidance_up_to) {
  const auto& vae = checkpoint.vae_config;
  const int64_t width = m.width(), latent_frames = vae.latent_frames(frames);
  const int64_t rows = *request.height / vae.spatial_factor(),
                columns = *request.width / vae.spatial_factor();
  const int64_t text = request.max_sequence_length.value_or(512);
  Work w{.blocks = m.layers, .heads = m.heads, .head_dim = m.head_dim};
  w.tokens = latent_frames * (rows / m.patch) * (columns / m.patch);
  w.velocity_channels = m.latent_channels * m.patch * m.patch;
  w.velocity_values = vae.z_dim * latent_frames * rows * columns;
  w.token_flops = multiply(1, width, 6 * width + 2 * m.mlp_width()) + 2 * multiply(1, text, width);
  w.edge_flops = multiply(1, m.patch_inputs() + w.velocity_channels, width);
  // The stream, its normed copy, q, k and v, or the MLP's inner activations; keys and values of the text.
  w.token_values = std::max(5 * width, 2 * width + m.mlp_width());
  w.text_values = m.layers * 2 * text * width;
  w.guided = *request.guidance > skip_guidance_up_to;
  w.element_bytes = checkpoint.dtype == at::kFloat ? 4 : 2;
  return w;
}

std::optional<Part> text_encoder_part(const CosmosCheckpoint& checkpoint) {
  const auto& folder = checkpoint.layout.text_encoder;
  if (folder.empty()) return {};
  const auto text = qwen_vl::read_text_config(folder + "/config.json");
  return Part{"text_encoder",
              folder,
              size_of<qwen_vl::TextWeights>(text),
              {{"layers", text.layers}, {"width", text.hidden_size}}};
}

}  // namespace orrery::pipeline
