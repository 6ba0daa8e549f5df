// Source: huggingface/diffusers 0.42.1, schedulers/scheduling_flow_match_euler_discrete.py; spec qwen-image
// §6.
#include "orrery/sample/flow_euler.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "orrery/base/error.h"
#include "orrery/models/json_config.h"

namespace orrery::sample {
namespace {

void check(const FlowShift& s, const std::string& path) {
  const auto demand = [&](bool holds, const char* what) {
    if (!holds) fail(ErrorKind::kCheckpoint, path, ": expected ", what);
  };
  demand(std::isfinite(s.shift) && s.shift > 0, "a positive shift");
  demand(std::isfinite(s.base_shift) && std::isfinite(s.max_shift) &&
             (s.exponential || (s.base_shift > 0 && s.max_shift > 0)),
         "finite base_shift and max_shift, positive ones if linear");
  demand(0 < s.base_tokens && s.base_tokens < s.max_tokens,
         "base_image_seq_len to be positive and below max_image_seq_len");
  demand(s.terminal >= 0 && s.terminal < 1, "shift_terminal from 0 to below 1");
}

/// The levels of one run before the terminal stretch, in float32, since the reference computes with arrays of
/// that type.
std::vector<float> shifted(const FlowShift& shift, int64_t evaluations, int64_t tokens) {
  const auto mu = static_cast<float>(shift.exponential ? std::exp(shift.mu(tokens)) : shift.mu(tokens));
  const auto factor = static_cast<float>(shift.shift), rest = static_cast<float>(shift.shift - 1);
  // numpy's linspace(1, 1/N, N): multiples of the step, and exactly 1/N at the end.
  const auto count = static_cast<double>(evaluations);
  const double step = evaluations > 1 ? (1 / count - 1) / (count - 1) : 0;
  std::vector<float> sigmas;
  for (int64_t i = 0; i < evaluations; ++i) {
    const bool at_end = evaluations > 1 && i + 1 == evaluations;
    const auto s = static_cast<float>(at_end ? 1 / count : 1 + static_cast<double>(i) * step);
    sigmas.push_back(shift.dynamic ? mu / (mu + (1 / s - 1)) : factor * s / (1 + rest * s));
  }
  return sigmas;
}

}  // namespace

FlowShift FlowShift::lightning() {
  FlowShift s;
  s.dynamic = true;
  s.base_shift = s.max_shift = std::log(3.0);
  s.max_tokens = 8192;
  return s;
}

double FlowShift::mu(int64_t tokens) const {
  const double slope = (max_shift - base_shift) / static_cast<double>(max_tokens - base_tokens);
  return static_cast<double>(tokens) * slope + (base_shift - slope * static_cast<double>(base_tokens));
}

FlowShift read_flow_shift(const std::string& path) {
  const JsonConfig json(path);
  FlowShift s;
  s.shift = json.get("shift", s.shift);
  s.dynamic = json.get("use_dynamic_shifting", s.dynamic);
  s.base_shift = json.get("base_shift", s.base_shift);
  s.max_shift = json.get("max_shift", s.max_shift);
  s.base_tokens = json.get("base_image_seq_len", s.base_tokens);
  s.max_tokens = json.get("max_image_seq_len", s.max_tokens);
  s.terminal = json.get("shift_terminal", s.terminal);
  const auto type = json.get<std::string>("time_shift_type", "exponential");
  s.exponential = type == "exponential";
  json.refuse(!s.exponential && type != "linear", "time_shift_type is ", type,
              "; expected exponential or linear");
  json.refuse(json.get("num_train_timesteps", 1000.0) != 1000, "num_train_timesteps is not 1000");
  for (const char* variant : {"invert_sigmas", "stochastic_sampling", "use_karras_sigmas",
                              "use_exponential_sigmas", "use_beta_sigmas"})
    json.refuse(json.get(variant, false), variant, " = true");
  check(s, path);
  return s;
}

std::vector<float> flow_sigmas(const FlowShift& shift, int64_t evaluations, int64_t tokens) {
  require(evaluations >= 1, "expected at least 1 step, got ", evaluations);
  auto sigmas = shifted(shift, evaluations, tokens);
  // A single level is 1, and nothing is left to stretch.
  if (shift.terminal != 0 && evaluations > 1) {
    const float scale = (1 - sigmas.back()) / static_cast<float>(1 - shift.terminal);
    for (float& sigma : sigmas) sigma = 1 - (1 - sigma) / scale;
  }
  sigmas.push_back(0);
  return sigmas;
}

float flow_time(float sigma, at::ScalarType compute) {
  return (at::tensor({1000 * sigma}).to(compute) / 1000).item<float>();
}

FlowEuler::FlowEuler(std::vector<float> sigmas, Tensor start)
    : sigmas_(std::move(sigmas)), sample_(std::move(start)) {
  ensure(sigmas_.size() >= 2 && sigmas_.back() == 0, "FlowEuler: expected levels that end with 0");
  ensure(std::ranges::adjacent_find(sigmas_, std::not_fn(std::greater())) == sigmas_.end(),
         "FlowEuler: expected falling levels");
}

const Tensor& FlowEuler::step(const Tensor& velocity) {
  ensure(!done(), "FlowEuler: all ", index_, " steps are done");
  ensure(velocity.sizes() == sample_.sizes(), "FlowEuler: expected a velocity ", sample_.sizes(), ", got ",
         velocity.sizes());
  const auto i = static_cast<size_t>(index_);
  // The difference has the velocity's dtype, too, and product and sum are rounded one by one: whether a fused
  // operation is one may depend on where a thread's share ends.
  const Tensor change = velocity * at::tensor(sigmas_[i + 1] - sigmas_[i]).to(velocity.scalar_type());
  sample_ = (sample_.to(at::kFloat) + change).to(velocity.scalar_type());
  ++index_;
  return sample_;
}

}  // namespace orrery::sample
