// Origin: nvidia-cosmos/cosmos-transfer2.5 2ff49d0, the distilled video2world model's sampler.
#include "orrery/sample/few_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>

#include <algorithm>
#include <functional>

#include "orrery/base/error.h"

namespace orrery::sample {

FewStep::FewStep(std::vector<float> sigmas, const Tensor& noise)
    : sigmas_(std::move(sigmas)), noise_(noise.to(at::kDouble)), x_(noise_), sample_(noise) {
  ensure(sigmas_.size() >= 2 && sigmas_.front() == 1 && sigmas_.back() == 0 &&
             std::ranges::adjacent_find(sigmas_, std::less_equal()) == sigmas_.end(),
         "FewStep: expected levels that fall from 1 to 0");
  ensure(noise.scalar_type() == at::kFloat, "FewStep: expected float32 noise, got ", noise.scalar_type());
}

const Tensor& FewStep::step(const Tensor& velocity) {
  ensure(index_ + 1 < sigmas_.size(), "FewStep: all ", index_, " steps are done");
  ensure(velocity.sizes() == sample_.sizes() && velocity.scalar_type() == at::kFloat,
         "FewStep: expected a float32 velocity ", sample_.sizes(), ", got ", velocity.scalar_type(), ' ',
         velocity.sizes());
  const double sigma = sigmas_[index_++], next = sigmas_[index_];
  const Tensor x0 = x_ - velocity.to(at::kDouble) * sigma;
  x_ = x0 * (1 - next) + noise_ * next;
  sample_ = x_.to(at::kFloat);
  return sample_;
}

}  // namespace orrery::sample
