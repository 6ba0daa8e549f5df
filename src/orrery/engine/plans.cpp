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
#include "orrery/pipeline/catalog.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

using pipeline::Work;

/// One rank's step: every forward that it makes, the gathering of the velocity, the exchange of velocities
/// and the decision whether to go on.
parallel::Cost step_cost(const Work& work, const comm::MeshShape& mesh, int rank) {
  const int64_t parts = mesh.ring * mesh.ulysses;
  const int64_t own = comm::split(work.tokens, parts, rank % parts).size();
  auto block = parallel::attention_cost(mesh, rank,
                                        {.tokens = work.tokens,
                                         .heads = work.heads,
                                         .head_dim = work.head_dim,
                                         .element_bytes = work.element_bytes,
                                         .replicated = work.joint_text_tokens});
  block.flops += static_cast<double>(own) * work.token_flops + work.text_flops;
  parallel::Cost forward = work.blocks * block;
  forward.flops += static_cast<double>(own) * work.edge_flops;
  if (parts > 1) forward += {(parts - 1) * own * work.velocity_channels * 4, 1, 0};
  parallel::Cost step = (work.guided && mesh.cfg == 1 ? 2 : 1) * forward;
  if (work.guided && mesh.cfg == 2) step += {4 * work.velocity_values, 1, 0};
  if (mesh.size() > 1) step += {(mesh.size() - 1) * 8, 1, 0};
  return step;
}

/// What a rank holds while it denoises, beside the weights: its tokens on their way through a block, what
/// attention has under way, and what is kept of the text.
int64_t activation_bytes(const Work& work, const comm::MeshShape& mesh) {
  const int64_t own = comm::split(work.tokens, mesh.ring * mesh.ulysses, 0).size() + work.joint_text_tokens;
  const int64_t travelling = mesh.ulysses > 1 || mesh.ring > 1 ? 4 * work.heads * work.head_dim : 0;
  const int64_t branches = work.guided && mesh.cfg == 1 ? 2 : 1;
  return work.element_bytes * (own * (work.token_values + travelling) + branches * work.text_values);
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
  const auto pipeline = pipeline::open(settings, compute_type(plan.dtype));
  const auto& checkpoint = pipeline->checkpoint();
  auto request = config::complete(wanted, checkpoint.limits);
  // Costs do not depend on which pictures are edited.
  if (request.mode == config::Mode::kEdit && request.images.empty()) request.images = {"picture"};
  config::validate(request, checkpoint.limits, plan);
  const Work work = pipeline->work(request);
  Json all = {{"model", checkpoint.layout.transformer},
              {"tokens", work.tokens},
              {"blocks", work.blocks},
              {"heads", work.heads},
              {"dtype", name_of(checkpoint.dtype)},
              {"weight_bytes", work.weight_bytes},
              {"chosen", to_string(chosen)},
              {"plans", Json::array()}};
  for (const auto& factors : config::legal_factors(plan)) all["plans"].push_back(row(work, factors));
  return json ? all.dump(2) + "\n" : as_text(all);
}

}  // namespace orrery
