#include "orrery/ops/linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"
#include "orrery/ops/silu_mul.h"

namespace orrery::ops {

Tensor reference::linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                         Activation activation) {
  const Tensor y = at::linear(x, weight.to(x.scalar_type()), bias ? bias->to(x.scalar_type()) : Tensor());
  switch (activation) {
    case Activation::kNone:
      return y;
    case Activation::kGelu:
      return at::gelu(y);
    case Activation::kGeluTanh:
      return at::gelu(y, "tanh");
    case Activation::kSilu:
      return silu(y);
  }
  fail(ErrorKind::kInternal, "linear: no activation ", static_cast<int>(activation));
}

namespace {

using Signature = Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t);

Tensor composite(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                 int64_t activation) {
  return reference::linear(x, weight, bias, static_cast<Activation>(activation));
}

Tensor meta(const Tensor& x, const Tensor& weight, const std::optional<Tensor>&, int64_t) {
  Shape shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return at::empty(shape, x.options());
}

bool is_float(const Tensor& t) {
  return t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
              Activation activation) {
  ensure(x.dim() >= 1 && weight.dim() == 2 && x.size(-1) == weight.size(1),
         "linear: expected x [..., K] and weight [N, K], got ", x.sizes(), " and ", weight.sizes());
  ensure(x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16,
         "linear: expected x of float32 or bfloat16, got ", x.scalar_type());
  ensure(is_float(weight), "linear: expected a weight of float32, bfloat16 or float16, got ",
         weight.scalar_type());
  ensure(!bias || (bias->dim() == 1 && bias->size(0) == weight.size(0) && is_float(*bias)),
         "linear: expected a floating bias of ", weight.size(0), ", got ",
         bias ? bias->sizes() : at::IntArrayRef(), " ", bias ? bias->scalar_type() : at::kFloat);
  static const auto op = find_op<Signature>("orrery::linear");
  return op.call(x, weight, bias, static_cast<int64_t>(activation));
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("linear(Tensor x, Tensor weight, Tensor? bias, int activation) -> Tensor");
  m.impl("linear", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::composite));
  m.impl("linear", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::meta));
}
