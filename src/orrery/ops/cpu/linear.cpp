#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <torch/library.h>

#include "orrery/ops/cpu/gemm.h"
#include "orrery/ops/cpu/isa.h"
#include "orrery/ops/linear.h"

namespace orrery::ops::cpu {
namespace {

/// Rows contiguous in memory; a copy only if they are not.
Tensor as_rows(const Tensor& t) { return t.stride(-1) == 1 ? t : t.contiguous(); }

Matrix matrix(const Tensor& rows) {
  return {rows.const_data_ptr(), rows.scalar_type(), rows.size(0), rows.stride(0)};
}

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
              int64_t activation_code) {
  const auto activation = static_cast<Activation>(activation_code);
  Shape shape = x.sizes().vec();
  shape.back() = weight.size(0);
  Tensor y = at::empty(shape, x.options());
  if (y.numel() == 0) return y;
  if (x.size(-1) == 0 || (x.scalar_type() == at::kBFloat16 && has_fast_bfloat16()))
    return reference::linear(x, weight, bias, activation);
  const Tensor rows = as_rows(x.reshape({-1, x.size(-1)})), weights = as_rows(weight);
  const Tensor wide_bias = bias ? bias->to(at::kFloat).contiguous() : Tensor();
  gemm(matrix(rows), matrix(weights), x.size(-1), bias ? wide_bias.const_data_ptr<float>() : nullptr,
       activation, y.data_ptr(), y.scalar_type());
  return y;
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) { m.impl("linear", TORCH_FN(orrery::ops::cpu::linear)); }
