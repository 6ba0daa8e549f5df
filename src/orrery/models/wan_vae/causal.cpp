#include "orrery/models/wan_vae/causal.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/ops/conv.h"
#include "orrery/ops/conv_winograd.h"

namespace orrery::wan_vae {
namespace {

constexpr int64_t kPast = 2;  // three taps

void zero_border(const Tensor& input, Border border) {
  for (const int64_t dim : {1, 2}) {
    input.narrow(dim, 0, border.before).zero_();
    input.narrow(dim, input.size(dim) - border.after, border.after).zero_();
  }
}

/// The last `count` temporal taps of a prepared weight.
Tensor last_taps(const Conv& w, int64_t count) {
  ensure(w.form != Conv::Form::kLoaded, "wan_vae: the weights have not been prepared");
  const int64_t dim = w.form == Conv::Form::kWinograd ? 0 : 2, taps = w.weight.size(dim);
  return count < taps ? w.weight.narrow(dim, taps - count, count) : w.weight;
}

}  // namespace

Tensor& Memory::next() {
  if (next_ == slots_.size()) slots_.emplace_back();
  return slots_[next_++];
}

void Memory::remember(Tensor& slot, const Tensor& frames) const {
  if (last_)
    slot = Tensor();
  else if (slot.defined() && slot.sizes() == frames.sizes())
    slot.copy_(frames);  // a new tensor for each chunk would leave holes between the large ones
  else
    slot = frames.clone();
}

Tensor bordered(at::IntArrayRef shape, Border border, const at::TensorOptions& options) {
  const int64_t more = border.before + border.after;
  const Tensor input = at::empty({shape[0], shape[1] + more, shape[2] + more, shape[3]}, options);
  zero_border(input, border);
  return input;
}

Tensor interior(const Tensor& input, Border border) {
  const int64_t more = border.before + border.after;
  return input.narrow(1, border.before, input.size(1) - more).narrow(2, border.before, input.size(2) - more);
}

Tensor causal_input(Memory& memory, at::IntArrayRef shape, Border border, const at::TensorOptions& options,
                    const std::function<void(const Tensor&)>& fill) {
  Tensor& slot = memory.next();
  const int64_t frames = shape[0], past = slot.defined() || frames > 1 ? kPast : 0;
  const int64_t known = slot.defined() ? slot.size(0) : 0;
  const int64_t more = border.before + border.after;
  const Tensor input = at::empty({past + frames, shape[1] + more, shape[2] + more, shape[3]}, options);
  // Remembered frames bring their border along.
  zero_border(input.narrow(0, past, frames), border);
  input.narrow(0, 0, past - std::min(past, known)).zero_();
  if (known > 0) input.narrow(0, past - known, known).copy_(slot);
  fill(interior(input.narrow(0, past, frames), border));
  const int64_t kept = std::min(kPast, past + frames);
  memory.remember(slot, input.narrow(0, past + frames - kept, kept));
  return input;
}

Tensor apply(const Conv& w, const Tensor& input) {
  const Tensor weight = last_taps(w, input.size(0));
  return w.form == Conv::Form::kWinograd ? ops::conv_winograd(input, weight, w.bias)
                                         : ops::conv(input, weight, w.bias);
}

void apply_add_(const Tensor& y, const Conv& w, const Tensor& input) {
  const Tensor weight = last_taps(w, input.size(0));
  if (w.form == Conv::Form::kWinograd)
    ops::conv_winograd_add_(y, input, weight, w.bias);
  else
    ops::conv_add_(y, input, weight, w.bias);
}

}  // namespace orrery::wan_vae
