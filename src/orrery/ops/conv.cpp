#include "orrery/ops/conv.h"

#include <ATen/ops/conv3d.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {

Tensor reference::conv(const Tensor& x, const Tensor& weight, const Tensor& bias, Stride stride) {
  const Tensor y = at::conv3d(x.permute({3, 0, 1, 2}).unsqueeze(0), weight, bias, stride);
  return y[0].permute({1, 2, 3, 0}).contiguous();
}

namespace {

using Signature = Tensor(const Tensor&, const Tensor&, const Tensor&, at::IntArrayRef);
using AddSignature = void(const Tensor&, const Tensor&, const Tensor&, const Tensor&);

Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias, at::IntArrayRef stride) {
  return reference::conv(x, weight, bias, {stride[0], stride[1], stride[2]});
}

void add_composite(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  y.add_(reference::conv(x, weight, bias, {1, 1, 1}));
}

bool has_no_rows(const Tensor& x, const Tensor& weight) { return x.size(1) < weight.size(3); }

Shape output_shape(const Tensor& x, const Tensor& weight, at::IntArrayRef stride) {
  Shape shape(4);
  for (int i = 0; i < 3; ++i) shape[i] = (x.size(i) - weight.size(i + 2)) / stride[i] + 1;
  if (has_no_rows(x, weight)) shape[1] = 0;
  shape[3] = weight.size(0);
  return shape;
}

Tensor meta(const Tensor& x, const Tensor& weight, const Tensor&, at::IntArrayRef stride) {
  return at::empty(output_shape(x, weight, stride), x.options());
}

void add_meta(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {}

void check(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  ensure(x.dim() == 4 && x.is_contiguous(), op, ": expected contiguous x [F, H, W, I], got ", x.sizes());
  ensure(weight.dim() == 5 && weight.size(1) == x.size(3) && weight.size(2) <= x.size(0) &&
             weight.size(4) <= x.size(2),
         op, ": expected a weight [O, I, kt, kh, kw] that fits x ", x.sizes(), ", got ", weight.sizes());
  ensure(bias.dim() == 1 && bias.size(0) == weight.size(0), op, ": expected a bias of ", weight.size(0),
         ", got ", bias.sizes());
  ensure(weight.scalar_type() == x.scalar_type() && bias.scalar_type() == x.scalar_type(), op,
         ": expected weight and bias of x's type ", x.scalar_type(), ", got ", weight.scalar_type(), " and ",
         bias.scalar_type());
}

}  // namespace

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, Stride stride) {
  check("conv", x, weight, bias);
  if (has_no_rows(x, weight)) return at::empty(output_shape(x, weight, stride), x.options());
  static const auto op = find_op<Signature>("orrery::conv");
  return op.call(x, weight, bias, stride);
}

void conv_add_(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check("conv_add_", x, weight, bias);
  const Shape shape = output_shape(x, weight, Stride{1, 1, 1});
  ensure(y.sizes() == shape && y.is_contiguous() && y.scalar_type() == x.scalar_type(),
         "conv_add_: expected contiguous y of ", at::IntArrayRef(shape), " ", x.scalar_type(), ", got ",
         y.sizes(), " ", y.scalar_type());
  if (has_no_rows(x, weight)) return;
  static const auto op = find_op<AddSignature>("orrery::conv_add_");
  op.call(y, x, weight, bias);
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("conv(Tensor x, Tensor weight, Tensor bias, int[3] stride) -> Tensor");
  m.impl("conv", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::composite));
  m.impl("conv", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::meta));
  m.def("conv_add_(Tensor(a!) y, Tensor x, Tensor weight, Tensor bias) -> ()");
  m.impl("conv_add_", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::add_composite));
  m.impl("conv_add_", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::add_meta));
}
