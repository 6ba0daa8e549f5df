#include "orrery/models/wan_vae/causal.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "orrery/base/error.h"
#include "orrery/ops/conv.h"
#include "orrery/ops/conv_winograd.h"

namespace orrery::wan_vae {
namespace {

constexpr int64_t kPast = 2;  // three taps

/// The input's frames within the border are filled, the border around them completed.
void fill_frames(const Surroundings& around, const Tensor& input, Border border, const Fill& fill) {
  const int64_t more = border.before + border.after;
  Tensor pixels = input;
  for (const int64_t dim : {1, 2}) {
    input.narrow(dim, 0, border.before).zero_();
    input.narrow(dim, input.size(dim) - border.after, border.after).zero_();
    pixels = pixels.narrow(dim, border.before, input.size(dim) - more);
  }
  fill(pixels);
  around.rows().fill_border(input, border.before, border.after);
}

/// The last `count` temporal taps of a prepared weight.
Tensor last_taps(const Conv& w, int64_t count) {
  ensure(w.form != Conv::Form::kLoaded, "wan_vae: the weights have not been prepared");
  const int64_t dim = w.form == Conv::Form::kWinograd ? 0 : 2, taps = w.weight.size(dim);
  return count < taps ? w.weight.narrow(dim, taps - count, count) : w.weight;
}

}  // namespace

Tensor& Surroundings::next() {
  if (next_ == slots_.size()) slots_.emplace_back();
  return slots_[next_++];
}

void Surroundings::remember(Tensor& slot, const Tensor& frames) const {
  if (last_)
    slot = Tensor();
  else if (slot.defined() && slot.sizes() == frames.sizes())
    slot.copy_(frames);  // a new tensor for each chunk would leave holes between the large ones
  else
    slot = frames.clone();
}

Tensor bordered(const Surroundings& around, at::IntArrayRef shape, Border border,
                const at::TensorOptions& options, const Fill& fill) {
  const int64_t more = border.before + border.after;
  const Tensor input = at::empty({shape[0], shape[1] + more, shape[2] + more, shape[3]}, options);
  fill_frames(around, input, border, fill);
  return input;
}

Tensor causal_input(Surroundings& around, at::IntArrayRef shape, Border border,
                    const at::TensorOptions& options, const Fill& fill) {
  Tensor& slot = around.next();
  const int64_t frames = shape[0], past = slot.defined() || frames > 1 ? kPast : 0;
  const int64_t known = slot.defined() ? slot.size(0) : 0;
  const int64_t more = border.before + border.after;
  const Tensor input = at::empty({past + frames, shape[1] + more, shape[2] + more, shape[3]}, options);
  input.narrow(0, 0, past - std::min(past, known)).zero_();
  if (known > 0) input.narrow(0, past - known, known).copy_(slot);
  fill_frames(around, input.narrow(0, past, frames), border, fill);
  const int64_t kept = std::min(kPast, past + frames);
  around.remember(slot, input.narrow(0, past + frames - kept, kept));
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
