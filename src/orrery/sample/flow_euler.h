#pragma once
#include <string>
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::sample {

/// How the noise levels of a flow-matching run are spread: the fields of diffusers'
/// FlowMatchEulerDiscreteScheduler with its class defaults (spec qwen-image §6.1).
struct FlowShift {
  double shift = 1;      // where it is not dynamic
  bool dynamic = false;  // the shift follows from the number of tokens
  bool exponential = true;
  double base_shift = 0.5, max_shift = 1.15;  // μ at base_tokens and at max_tokens
  int64_t base_tokens = 256, max_tokens = 4096;
  double terminal = 0;  // the last level before 0; 0: wherever the shift leaves it

  /// Lightning's few-step models: a shift of 3 whatever the size, no terminal level (spec qwen-image §12.1).
  static FlowShift lightning();

  /// μ for so many tokens to denoise (given pictures are not counted): a line, which goes on beyond both
  /// ends.
  double mu(int64_t tokens) const;
};

/// scheduler/scheduler_config.json. Error of kind checkpoint for a missing file or impossible field, of kind
/// unsupported for levels of another kind (karras, exponential, beta, inverted) or stochastic steps.
FlowShift read_flow_shift(const std::string& path);

/// N + 1 levels, from 1 down to 0, for N network evaluations: 1, 1 − 1/N, …, 1/N, shifted and then stretched
/// to the terminal level (spec qwen-image §6.3), in float32 as in the reference. One evaluation with a
/// terminal level, for which the reference gives NaN, is {1, 0}. Error of kind request (evaluations < 1).
std::vector<float> flow_sigmas(const FlowShift& shift, int64_t evaluations, int64_t tokens);

/// What the network is told of level σ in diffusers' pipelines: 1000·σ and then its thousandth, both rounded
/// to the compute dtype (spec qwen-image §2.8).
float flow_time(float sigma, at::ScalarType compute);

/// Euler's method along the flow, x + (σ' − σ)·v (spec qwen-image §6.5). Tensors are of any one shape;
/// results do not depend on the number of threads.
class FlowEuler {
 public:
  /// sigmas: falling levels, the last one 0. start: the noise, floating; it is not written to. Error of kind
  /// internal if there are less than two levels or they do not fall to 0.
  FlowEuler(std::vector<float> sigmas, Tensor start);

  /// The current sample: the noise at first, the result when done().
  const Tensor& sample() const { return sample_; }

  /// The evaluation that comes next, 0 to N; N when done.
  int64_t index() const { return index_; }
  bool done() const { return index_ + 1 == static_cast<int64_t>(sigmas_.size()); }

  /// Goes to the next level, given the velocity of sample() at the current one, guidance included. Difference
  /// and product are rounded to the velocity's dtype, the sum is taken in float32 and then rounded to it.
  /// Returns the new sample().
  const Tensor& step(const Tensor& velocity);

 private:
  std::vector<float> sigmas_;
  int64_t index_ = 0;
  Tensor sample_;
};

}  // namespace orrery::sample
