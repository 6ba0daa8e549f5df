#include "orrery/ops/conv_winograd.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {
namespace {

using Signature = void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool);
using WeightSignature = Tensor(const Tensor&);

constexpr int64_t kPanel = 16;

Tensor matrix(std::initializer_list<double> values, int64_t columns, at::ScalarType dtype) {
  return at::tensor(at::ArrayRef<double>(values)).view({-1, columns}).to(dtype);
}

void meta(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool) {}

Tensor weight_meta(const Tensor& weight) {
  return at::empty({weight.size(2), 16, weight.size(0) / kPanel, weight.size(1), kPanel}, weight.options());
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  ensure(weight.dim() == 5 && weight.size(1) == 16 && weight.size(4) == kPanel && weight.is_contiguous() &&
             weight.scalar_type() == at::kFloat,
         "conv_winograd: expected float32 weights [kt, 16, O/16, I, 16], got ", weight.sizes(), " ",
         weight.scalar_type());
  ensure(x.dim() == 4 && x.is_contiguous() && x.scalar_type() == at::kFloat && x.size(0) >= weight.size(0) &&
             x.size(1) >= 2 && x.size(1) % 2 == 0 && x.size(2) >= 4 && x.size(2) % 2 == 0 &&
             x.size(3) == weight.size(3),
         "conv_winograd: expected contiguous float32 x [F, H+2, W+2, I] with F ≥ ", weight.size(0),
         ", even H and W and I = ", weight.size(3), ", got ", x.sizes(), " ", x.scalar_type());
  ensure(bias.dim() == 1 && bias.size(0) == weight.size(2) * kPanel && bias.scalar_type() == at::kFloat,
         "conv_winograd: expected a float32 bias of ", weight.size(2) * kPanel, ", got ", bias.sizes(), " ",
         bias.scalar_type());
}

void call(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias, bool add) {
  if (y.numel() == 0) return;
  static const auto op = find_op<Signature>("orrery::conv_winograd");
  op.call(y, x, weight, bias, add);
}

Shape output_shape(const Tensor& x, const Tensor& weight) {
  return {x.size(0) - weight.size(0) + 1, x.size(1) - 2, x.size(2) - 2, weight.size(2) * kPanel};
}

}  // namespace

void reference::conv_winograd(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              bool add) {
  const int64_t frames = y.size(0), channels = y.size(3);
  const Tensor input = matrix({1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1}, 4, at::kFloat);
  const Tensor output = matrix({1, 1, 1, 0, 0, 1, -1, -1}, 4, at::kFloat);
  const Tensor tiles = x.unfold(1, 4, 2).unfold(2, 4, 2);                  // [F, H/2, W/2, I, 4, 4]
  const Tensor spectrum = at::matmul(at::matmul(input, tiles), input.t())  // one 4×4 domain for each tile
                              .flatten(4)
                              .permute({4, 0, 1, 2, 3});              // [16, F, H/2, W/2, I]
  const Tensor kernels = weight.permute({0, 1, 3, 2, 4}).flatten(3);  // [kt, 16, I, O]
  Tensor sum;
  for (int64_t tap = 0; tap < weight.size(0); ++tap) {
    const Tensor product = at::matmul(spectrum.narrow(1, tap, frames).flatten(1, 3), kernels[tap]);
    sum = tap == 0 ? product : sum + product;
  }
  const Tensor domain =
      sum.view({4, 4, frames, y.size(1) / 2, y.size(2) / 2, channels}).permute({2, 3, 4, 5, 0, 1});
  const Tensor blocks = at::matmul(at::matmul(output, domain), output.t());  // [F', H/2, W/2, O, 2, 2]
  const Tensor result = blocks.permute({0, 1, 4, 2, 5, 3}).reshape(y.sizes()) + bias;
  if (add)
    y.add_(result);
  else
    y.copy_(result);
}

Tensor reference::winograd_weight(const Tensor& weight) {
  const Tensor kernel = matrix({1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1}, 3, at::kDouble);
  const Tensor domain =
      at::matmul(at::matmul(kernel, weight.to(at::kDouble)), kernel.t());  // [O, I, kt, 4, 4]
  return domain.to(at::kFloat)
      .view({weight.size(0) / kPanel, kPanel, weight.size(1), weight.size(2), 16})
      .permute({3, 4, 0, 2, 1})
      .contiguous();
}

bool winograd_fits(const Tensor& weight) {
  return weight.device().is_cpu() && weight.scalar_type() == at::kFloat && weight.dim() == 5 &&
         weight.size(3) == 3 && weight.size(4) == 3 && weight.size(0) % kPanel == 0 &&
         weight.size(1) % kPanel == 0;
}

Tensor winograd_weight(const Tensor& weight) {
  ensure(winograd_fits(weight), "winograd_weight: expected float32 [16·m, 16·n, kt, 3, 3], got ",
         weight.sizes(), " ", weight.scalar_type());
  static const auto op = find_op<WeightSignature>("orrery::winograd_weight");
  return op.call(weight);
}

Tensor conv_winograd(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x, weight, bias);
  const Tensor y = at::empty(output_shape(x, weight), x.options());
  call(y, x, weight, bias, /*add=*/false);
  return y;
}

void conv_winograd_add_(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x, weight, bias);
  const Shape shape = output_shape(x, weight);
  ensure(y.sizes() == shape && y.is_contiguous() && y.scalar_type() == at::kFloat,
         "conv_winograd_add_: expected contiguous float32 y of ", at::IntArrayRef(shape), ", got ", y.sizes(),
         " ", y.scalar_type());
  call(y, x, weight, bias, /*add=*/true);
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("winograd_weight(Tensor weight) -> Tensor");
  m.impl("winograd_weight", c10::DispatchKey::CompositeExplicitAutograd,
         TORCH_FN(orrery::ops::reference::winograd_weight));
  m.impl("winograd_weight", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::weight_meta));
  m.def("conv_winograd(Tensor(a!) y, Tensor x, Tensor weight, Tensor bias, bool add) -> ()");
  m.impl("conv_winograd", c10::DispatchKey::CompositeExplicitAutograd,
         TORCH_FN(orrery::ops::reference::conv_winograd));
  m.impl("conv_winograd", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::meta));
}
