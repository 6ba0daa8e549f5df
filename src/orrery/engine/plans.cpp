#include "orrery/engine/plans.h"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/comm/split.h"
#include "orrery/config/validate.h"
#include "orrery/engine/machine.h"
#include "orrery/parallel/cost.h"
#include "orrery/parallel/team.h"
#include "orrery/pipeline/predict_model.h"
#include "orrery/weights/source.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

/// What the costs of a request depend on.
struct Work {
  const cosmos::TransformerConfig& model;
  Shape latents;  // [C, T, h, w]
  int64_t text_tokens;
  bool guided;
  int64_t element_bytes;

  int64_t tokens() const { return latents[1] * (latents[2] / model.patch) * (latents[3] / model.patch); }
};

double multiply(int64_t rows, int64_t in, int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

/// One rank's step: every forward that it makes, the gathering of the clip, the exchange of velocities and
/// the decision whether to go on.
parallel::Cost step_cost(const Work& work, const comm::MeshShape& mesh, int rank) {
  const auto& m = work.model;
  const int64_t parts = mesh.ring * mesh.ulysses, width = m.width();
  const int64_t own = comm::split(work.tokens(), parts, rank % parts).size();
  auto block = parallel::attention_cost(mesh, rank, {work.tokens(), m.heads, m.head_dim, work.element_bytes});
  block.flops += multiply(own, width, 6 * width + 2 * m.mlp_width()) +
                 4.0 * static_cast<double>(own) * static_cast<double>(work.text_tokens * width);
  parallel::Cost forward = m.layers * block;
  forward.flops += multiply(own, m.patch_inputs() + m.latent_channels * m.patch * m.patch, width);
  if (parts > 1) {
    const int64_t patch_bytes = m.latent_channels * m.patch * m.patch * 4;
    forward += {(parts - 1) * own * patch_bytes, 1, 0};
  }
  parallel::Cost step = (work.guided && mesh.cfg == 1 ? 2 : 1) * forward;
  if (work.guided && mesh.cfg == 2)
    step += {4 * work.latents[0] * work.latents[1] * work.latents[2] * work.latents[3], 1, 0};
  if (mesh.size() > 1) step += {(mesh.size() - 1) * 8, 1, 0};
  return step;
}

/// What a rank holds while it denoises, beside the weights: its tokens on their way through a block (the
/// stream, its normed copy, q, k and v, or the MLP's inner activations), what attention has under way, and
/// the text's keys and values.
int64_t activation_bytes(const Work& work, const comm::MeshShape& mesh) {
  const auto& m = work.model;
  const int64_t own = comm::split(work.tokens(), mesh.ring * mesh.ulysses, 0).size(), width = m.width();
  const int64_t way = std::max<int64_t>(5 * width, 2 * width + m.mlp_width());
  const int64_t travelling = mesh.ulysses > 1 ? 4 * width : mesh.ring > 1 ? 4 * width : 0;
  const int64_t branches = work.guided && mesh.cfg == 1 ? 2 : 1;
  return work.element_bytes * (own * (way + travelling) + branches * m.layers * 2 * work.text_tokens * width);
}

Json row(const Work& work, const config::Factors& factors) {
  const auto mesh = parallel::mesh_shape(factors);
  parallel::Cost most;
  double sum = 0;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const auto cost = step_cost(work, mesh, rank);
    most.bytes = std::max(most.bytes, cost.bytes);
    most.exchanges = std::max(most.exchanges, cost.exchanges);
    most.flops = std::max(most.flops, cost.flops);
    sum += cost.flops;
  }
  return {{"parallel", to_string(factors)},
          {"bytes_per_step", most.bytes},
          {"exchanges_per_step", most.exchanges},
          {"activation_bytes", activation_bytes(work, mesh)},
          {"imbalance", most.flops * mesh.size() / sum - 1}};
}

std::string as_text(const Json& json) {
  std::ostringstream out;
  out << json["model"].get<std::string>() << ": " << json["tokens"] << " tokens, " << json["blocks"]
      << " blocks of " << json["heads"] << " heads, " << json["dtype"].get<std::string>() << "; weights "
      << human_bytes(json["weight_bytes"])
      << " (thread ranks share them; each process has its own, or the file's "
      << "pages)\n\n";
  out << std::left << std::setw(16) << "parallel" << std::right << std::setw(22) << "sent per rank, step"
      << std::setw(12) << "exchanges" << std::setw(20) << "memory per rank" << std::setw(12) << "imbalance"
      << "\n";
  for (const auto& plan : json["plans"])
    out << std::left << std::setw(16) << plan["parallel"].get<std::string>() << std::right << std::setw(22)
        << human_bytes(plan["bytes_per_step"]) << std::setw(12) << plan["exchanges_per_step"].get<int64_t>()
        << std::setw(20) << human_bytes(plan["activation_bytes"]) << std::setw(10) << std::fixed
        << std::setprecision(1) << 100 * plan["imbalance"].get<double>() << " %"
        << (plan["parallel"] == json["chosen"] ? "  <- chosen" : "") << "\n";
  return out.str();
}

}  // namespace

std::string plans(const config::Settings& settings, const config::Plan& plan, const config::Request& wanted,
                  bool json) {
  const auto chosen = config::resolve(plan);
  const auto model = pipeline::open_predict_model(settings, compute_type(plan.dtype));
  const auto request = config::complete(wanted, model.limits);
  config::validate(request, model.limits, plan);
  const int64_t f = model.vae_config.spatial_factor();
  const Work work{.model = model.config,
                  .latents = {model.vae_config.z_dim, model.vae_config.latent_frames(*request.num_frames),
                              *request.height / f, *request.width / f},
                  .text_tokens = request.max_sequence_length.value_or(512),
                  .guided = *request.guidance > model.reference(request).skip_guidance_up_to,
                  .element_bytes = model.dtype == at::kFloat ? 4 : 2};
  weights::Sizer sizer;
  cosmos::TransformerWeights shape;
  bind(sizer, shape, model.config);
  Json all = {{"model", model.layout.transformer}, {"tokens", work.tokens()},
              {"blocks", model.config.layers},     {"heads", model.config.heads},
              {"dtype", name_of(model.dtype)},     {"weight_bytes", sizer.bytes(model.dtype)},
              {"chosen", to_string(chosen)},       {"plans", Json::array()}};
  for (const auto& factors : config::legal_factors(plan)) all["plans"].push_back(row(work, factors));
  return json ? all.dump(2) + "\n" : as_text(all);
}

}  // namespace orrery
