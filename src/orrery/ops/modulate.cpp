#include "orrery/ops/modulate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <torch/library.h>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {

Tensor reference::layer_norm_modulate(const Tensor& x, const Tensor& shift, const Tensor& scale,
                                      const Tensor& row, double eps) {
  const Tensor normal = at::layer_norm(x.to(at::kFloat), {x.size(1)}, {}, {}, eps);
  return (normal * (1 + scale.index_select(0, row)) + shift.index_select(0, row)).to(x.scalar_type());
}

void reference::add_gated_(const Tensor& x, const Tensor& gate, const Tensor& y, const Tensor& row) {
  x.copy_(x.to(at::kFloat) + gate.index_select(0, row) * y.to(at::kFloat));
}

namespace {

using Modulate = Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, double);
using AddGated = void(const Tensor&, const Tensor&, const Tensor&, const Tensor&);

Tensor modulate_meta(const Tensor& x, const Tensor&, const Tensor&, const Tensor&, double) {
  return at::empty(x.sizes(), x.options());
}

void add_gated_meta(const Tensor&, const Tensor&, const Tensor&, const Tensor&) {}

void check_rows(const char* op, const Tensor& x, const Tensor& table, const Tensor& row) {
  ensure(x.dim() == 2 && x.is_floating_point(), op, ": expected floating x [S, E], got ", x.sizes(), " ",
         x.scalar_type());
  ensure(table.dim() == 2 && table.size(1) == x.size(1) && table.scalar_type() == at::kFloat, op,
         ": expected a float32 table [R, ", x.size(1), "], got ", table.sizes(), " ", table.scalar_type());
  ensure(row.dim() == 1 && row.size(0) == x.size(0) && row.scalar_type() == at::kInt, op,
         ": expected int32 rows [", x.size(0), "], got ", row.sizes(), " ", row.scalar_type());
}

}  // namespace

Tensor layer_norm_modulate(const Tensor& x, const Tensor& shift, const Tensor& scale, const Tensor& row,
                           double eps) {
  check_rows("layer_norm_modulate", x, shift, row);
  check_rows("layer_norm_modulate", x, scale, row);
  ensure(shift.sizes() == scale.sizes(), "layer_norm_modulate: expected shift and scale of one shape, got ",
         shift.sizes(), " and ", scale.sizes());
  static const auto op = find_op<Modulate>("orrery::layer_norm_modulate");
  return op.call(x, shift, scale, row, eps);
}

void add_gated_(const Tensor& x, const Tensor& gate, const Tensor& y, const Tensor& row) {
  check_rows("add_gated_", x, gate, row);
  ensure(
      y.sizes() == x.sizes() && y.scalar_type() == x.scalar_type() && x.is_contiguous() && y.is_contiguous(),
      "add_gated_: expected contiguous x and y of one shape and dtype, got ", x.sizes(), " ", x.scalar_type(),
      " and ", y.sizes(), " ", y.scalar_type());
  static const auto op = find_op<AddGated>("orrery::add_gated_");
  op.call(x, gate, y, row);
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("layer_norm_modulate(Tensor x, Tensor shift, Tensor scale, Tensor row, float eps) -> Tensor");
  m.impl("layer_norm_modulate", c10::DispatchKey::CompositeExplicitAutograd,
         TORCH_FN(orrery::ops::reference::layer_norm_modulate));
  m.impl("layer_norm_modulate", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::modulate_meta));
  m.def("add_gated_(Tensor(a!) x, Tensor gate, Tensor y, Tensor row) -> ()");
  m.impl("add_gated_", c10::DispatchKey::CompositeExplicitAutograd,
         TORCH_FN(orrery::ops::reference::add_gated_));
  m.impl("add_gated_", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::add_gated_meta));
}
