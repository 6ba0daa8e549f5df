#pragma once
#include <vector>

#include "orrery/base/tensor.h"

namespace orrery::sample {

/// The sampler of models distilled to a few steps (multistep consistency sampling, Song et al., arXiv
/// 2303.01469, algorithm 1, with one noise for all steps; spec cosmos-transfer2.5 §5.4): every evaluation
/// predicts the clean sample x0 = x − σ·v, which is taken back to the next level, (1 − σ')·x0 + σ'·noise. The
/// reference writes it in TrigFlow's angles, σ = sin t / (cos t + sin t). The state is float64, samples are
/// float32 of any one shape; results do not depend on the number of threads.
class FewStep {
 public:
  /// sigmas: falling levels from 1 to exactly 0 (distilled in sigmas.h). noise: float32; it is not written
  /// to. Error of kind internal if they are others.
  FewStep(std::vector<float> sigmas, const Tensor& noise);

  /// The current sample: the noise at first, the result when all steps are done.
  const Tensor& sample() const { return sample_; }

  /// Goes to the next level, given the velocity of sample() at the current one. Returns the new sample().
  const Tensor& step(const Tensor& velocity);

 private:
  std::vector<float> sigmas_;
  size_t index_ = 0;
  Tensor noise_, x_;  // float64
  Tensor sample_;     // x_ as float32
};

}  // namespace orrery::sample
