#pragma once
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::sample {

/// UniPC of order 2 with the bh2 function, predicting x0, on flow levels: the solver of Cosmos (spec
/// cosmos-predict2.5 §5.7; Zhao et al., arXiv 2302.04867). Corrects with every new velocity but the first,
/// then predicts the next sample. Tensors are float32 of any one shape, scalars float64; results do not
/// depend on the number of threads.
class UniPC {
 public:
  /// sigmas: N + 1 levels, strictly falling from below 1 to exactly 0 (sigmas.h). start: the noise, float32;
  /// it is not written to. Error of kind internal if the levels or the type are others.
  UniPC(std::vector<float> sigmas, Tensor start);

  /// The current sample: the noise at first, the result when done().
  const Tensor& sample() const { return sample_; }

  /// The evaluation that comes next, 0 to N; N when done.
  int64_t index() const { return index_; }
  bool done() const { return index_ + 1 == static_cast<int64_t>(sigmas_.size()); }

  /// Goes to the next level, given the velocity of sample() at the current one, guidance included. Returns
  /// the new sample().
  const Tensor& step(const Tensor& velocity);

 private:
  double lambda(int64_t i) const;
  Tensor correct(const Tensor& predicted) const;
  Tensor predict(int order) const;

  std::vector<double> sigmas_;
  int64_t index_ = 0;
  Tensor sample_;                    // x: as the last predictor left it
  Tensor corrected_;                 // x̂ of the step before
  Tensor x0_, x0_last_, x0_before_;  // m_i, m_{i-1}, m_{i-2}
  int last_order_ = 0;
};

}  // namespace orrery::sample
