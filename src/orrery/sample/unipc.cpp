// Source: huggingface/diffusers 0.42.1, schedulers/scheduling_unipc_multistep.py (the official
// FlowUniPCMultistepScheduler computes the same), in the closed form of spec cosmos-predict2.5 §5.7, whose
// letters are used here.
#include "orrery/sample/unipc.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "orrery/base/error.h"

namespace orrery::sample {

// Only products and sums with one rounding each: an add with a factor may be fused or not, depending on where
// a thread's share of the tensor ends.

UniPC::UniPC(std::vector<float> sigmas, Tensor start)
    : sigmas_(sigmas.begin(), sigmas.end()), sample_(std::move(start)) {
  ensure(sigmas_.size() >= 2 && sigmas_.front() < 1 && sigmas_.back() == 0,
         "UniPC: expected levels from below 1 to 0");
  ensure(std::ranges::adjacent_find(sigmas_, std::less_equal()) == sigmas_.end(),
         "UniPC: expected falling levels");
  ensure(sample_.scalar_type() == at::kFloat, "UniPC: expected a float32 sample, got ",
         sample_.scalar_type());
}

const Tensor& UniPC::step(const Tensor& velocity) {
  ensure(!done(), "UniPC: all ", index_, " steps are done");
  ensure(velocity.sizes() == sample_.sizes() && velocity.scalar_type() == at::kFloat,
         "UniPC: expected a float32 velocity ", sample_.sizes(), ", got ", velocity.scalar_type(), ' ',
         velocity.sizes());
  x0_before_ = std::exchange(x0_last_, x0_);
  x0_ = sample_ - velocity * sigmas_[static_cast<size_t>(index_)];
  corrected_ = index_ == 0 ? sample_ : correct(corrected_);
  const auto left = static_cast<int64_t>(sigmas_.size()) - 1 - index_;
  last_order_ = static_cast<int>(std::min<int64_t>({2, left, index_ + 1}));
  sample_ = predict(last_order_);
  ++index_;
  return sample_;
}

double UniPC::lambda(int64_t i) const {
  const double sigma = sigmas_[static_cast<size_t>(i)];
  return std::log(1 - sigma) - std::log(sigma);
}

/// x̂_i from x̂_{i-1}, now that m_i is known; of the order of the prediction that led here.
Tensor UniPC::correct(const Tensor& predicted) const {
  const auto i = static_cast<size_t>(index_);
  const double h = lambda(index_) - lambda(index_ - 1), B = std::expm1(-h), alpha = 1 - sigmas_[i];
  const Tensor base = predicted * (sigmas_[i] / sigmas_[i - 1]) - x0_last_ * (alpha * B);
  const Tensor D = x0_ - x0_last_;
  if (last_order_ == 1) return base - D * (alpha * B * 0.5);
  const double r = (lambda(index_ - 2) - lambda(index_ - 1)) / h, H = -h;
  const double p2 = B / H - 1, b1 = p2 / B, p3 = p2 / H - 0.5, b2 = 2 * p3 / B;
  const double rho1 = (b1 - b2) / (1 - r), rho2 = b1 - rho1;
  const Tensor D1 = (x0_before_ - x0_last_) * (1 / r);
  return base - (D1 * rho1 + D * rho2) * (alpha * B);
}

/// x_{i+1} from x̂_i.
Tensor UniPC::predict(int order) const {
  const auto next = static_cast<size_t>(index_) + 1;
  if (sigmas_[next] == 0) return x0_;  // λ is infinite there, and the formula's limit is exactly this
  const double h = lambda(index_ + 1) - lambda(index_), B = std::expm1(-h), alpha = 1 - sigmas_[next];
  const Tensor base = corrected_ * (sigmas_[next] / sigmas_[next - 1]) - x0_ * (alpha * B);
  if (order == 1) return base;
  const double r = (lambda(index_ - 1) - lambda(index_)) / h;
  return base - (x0_last_ - x0_) * (alpha * B * 0.5 / r);
}

}  // namespace orrery::sample
