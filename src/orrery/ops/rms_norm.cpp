#include "orrery/ops/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {

Tensor reference::rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Tensor wide = x.to(at::kFloat);
  return (wide * at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + eps) * weight.to(at::kFloat))
      .to(x.scalar_type());
}

Tensor reference::rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& rope, double eps,
                                Pairs pairs) {
  Tensor y = x.to(at::kFloat);
  if (weight.defined()) y = reference::rms_norm(y, weight, eps);
  if (rope.defined()) {
    const auto angles = rope.unsqueeze(1).chunk(2, -1);  // cos, sin: [S, 1, D/2]
    // [S, N, D] as its D/2 pairs: the first of each along `side` 0, the second along `side` 1.
    const int64_t side = pairs == Pairs::kHalves ? -2 : -1;
    const auto pair = y.unflatten(-1, side == -2 ? Shape{2, -1} : Shape{-1, 2}).unbind(side);
    y = at::stack({pair[0] * angles[0] - pair[1] * angles[1], pair[1] * angles[0] + pair[0] * angles[1]},
                  side)
            .flatten(-2);
  }
  return y.to(x.scalar_type()).contiguous();
}

namespace {

using Signature = Tensor(const Tensor&, const Tensor&, double);
using RopeSignature = Tensor(const Tensor&, const std::optional<Tensor>&, const std::optional<Tensor>&,
                             double, int64_t);

Tensor rope_composite(const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& rope,
                      double eps, int64_t pairs) {
  return reference::rms_norm_rope(x, weight.value_or(Tensor()), rope.value_or(Tensor()), eps,
                                  static_cast<Pairs>(pairs));
}

Tensor meta(const Tensor& x, const Tensor&, double) { return at::empty(x.sizes(), x.options()); }

Tensor rope_meta(const Tensor& x, const std::optional<Tensor>&, const std::optional<Tensor>&, double,
                 int64_t) {
  return at::empty(x.sizes(), x.options());
}

std::optional<Tensor> if_defined(const Tensor& t) {
  return t.defined() ? std::optional<Tensor>(t) : std::nullopt;
}

void check_weight(const char* op, const Tensor& x, const Tensor& weight) {
  ensure(weight.dim() == 1 && weight.size(0) == x.size(-1) && weight.is_floating_point(), op,
         ": expected a floating weight of ", x.size(-1), ", got ", weight.sizes(), " ", weight.scalar_type());
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  ensure(x.dim() >= 1 && x.is_floating_point(), "rms_norm: expected floating x [..., D], got ", x.sizes(),
         " ", x.scalar_type());
  check_weight("rms_norm", x, weight);
  static const auto op = find_op<Signature>("orrery::rms_norm");
  return op.call(x, weight, eps);
}

Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& rope, double eps, Pairs pairs) {
  ensure(x.dim() == 3 && x.is_floating_point(), "rms_norm_rope: expected floating x [S, N, D], got ",
         x.sizes(), " ", x.scalar_type());
  if (weight.defined()) check_weight("rms_norm_rope", x, weight);
  ensure(!rope.defined() || (x.size(2) % 2 == 0 && rope.sizes() == at::IntArrayRef({x.size(0), x.size(2)}) &&
                             rope.scalar_type() == at::kFloat),
         "rms_norm_rope: expected a float32 table of [", x.size(0), ", ", x.size(2),
         "] and an even width, got ", rope.defined() ? rope.sizes() : at::IntArrayRef());
  static const auto op = find_op<RopeSignature>("orrery::rms_norm_rope");
  return op.call(x, if_defined(weight), if_defined(rope), eps, static_cast<int64_t>(pairs));
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
  m.impl("rms_norm", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::reference::rms_norm));
  m.impl("rms_norm", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::meta));
  m.def("rms_norm_rope(Tensor x, Tensor? weight, Tensor? rope, float eps, int pairs) -> Tensor");
  m.impl("rms_norm_rope", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::rope_composite));
  m.impl("rms_norm_rope", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::rope_meta));
}
