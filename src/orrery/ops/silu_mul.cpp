#include "orrery/ops/silu_mul.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/silu.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {

Tensor reference::silu(const Tensor& x) { return at::silu(x.to(at::kFloat)).to(x.scalar_type()); }

Tensor reference::silu_mul(const Tensor& gate, const Tensor& up) {
  return (at::silu(gate.to(at::kFloat)) * up.to(at::kFloat)).to(gate.scalar_type());
}

namespace {

Tensor silu_meta(const Tensor& x) { return at::empty(x.sizes(), x.options()); }
Tensor silu_mul_meta(const Tensor& gate, const Tensor&) { return at::empty(gate.sizes(), gate.options()); }

}  // namespace

Tensor silu(const Tensor& x) {
  ensure(x.is_floating_point(), "silu: expected a floating tensor, got ", x.scalar_type());
  static const auto op = find_op<Tensor(const Tensor&)>("orrery::silu");
  return op.call(x);
}

Tensor silu_mul(const Tensor& gate, const Tensor& up) {
  ensure(gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type() && gate.is_floating_point(),
         "silu_mul: expected gate and up of one shape and floating dtype, got ", gate.sizes(), " ",
         gate.scalar_type(), " and ", up.sizes(), " ", up.scalar_type());
  static const auto op = find_op<Tensor(const Tensor&, const Tensor&)>("orrery::silu_mul");
  return op.call(gate, up);
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("silu(Tensor x) -> Tensor");
  m.impl("silu", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::reference::silu));
  m.impl("silu", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::silu_meta));
  m.def("silu_mul(Tensor gate, Tensor up) -> Tensor");
  m.impl("silu_mul", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::reference::silu_mul));
  m.impl("silu_mul", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::silu_mul_meta));
}
