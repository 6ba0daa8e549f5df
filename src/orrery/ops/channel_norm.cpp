#include "orrery/ops/channel_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/silu.h>
#include <torch/library.h>

#include <cmath>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {

void reference::channel_norm(const Tensor& x, const Tensor& weight, bool silu, const Tensor& out) {
  const Tensor wide = x.to(at::kFloat);
  const Tensor norm = at::linalg_vector_norm(wide, 2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
  const Tensor y = wide / norm * (weight.to(at::kFloat) * std::sqrt(static_cast<double>(x.size(-1))));
  out.copy_(silu ? at::silu(y) : y);
}

namespace {

using Signature = void(const Tensor&, const Tensor&, bool, const Tensor&);

void meta(const Tensor&, const Tensor&, bool, const Tensor&) {}

}  // namespace

void channel_norm(const Tensor& x, const Tensor& weight, bool silu, const Tensor& out) {
  ensure(x.dim() == 4 && x.is_contiguous() &&
             (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16),
         "channel_norm: expected contiguous x [F, H, W, C] of float32 or bfloat16, got ", x.sizes(), " ",
         x.scalar_type());
  ensure(weight.dim() == 1 && weight.size(0) == x.size(3) && weight.is_floating_point(),
         "channel_norm: expected a floating weight of ", x.size(3), ", got ", weight.sizes(), " ",
         weight.scalar_type());
  ensure(out.sizes() == x.sizes() && out.scalar_type() == x.scalar_type() && out.stride(3) == 1 &&
             out.stride(2) == x.size(3),
         "channel_norm: expected an output of ", x.sizes(), " ", x.scalar_type(),
         " with contiguous rows, got ", out.sizes(), " ", out.scalar_type(), ", strides ", out.strides());
  static const auto op = find_op<Signature>("orrery::channel_norm");
  op.call(x, weight, silu, out);
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("channel_norm(Tensor x, Tensor weight, bool silu, Tensor(a!) out) -> ()");
  m.impl("channel_norm", c10::DispatchKey::CompositeExplicitAutograd,
         TORCH_FN(orrery::ops::reference::channel_norm));
  m.impl("channel_norm", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::meta));
}
