#include "orrery/ops/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <limits>

#include "orrery/base/error.h"
#include "orrery/ops/library.h"

namespace orrery::ops {

PartialAttention reference::attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                      bool causal) {
  const int64_t sq = q.size(0), sk = k.size(0), repeat = k.size(1) ? q.size(1) / k.size(1) : 1;
  const Tensor queries = q.to(at::kFloat).transpose(0, 1);                               // [N, Sq, D]
  const Tensor keys = k.to(at::kFloat).repeat_interleave(repeat, 1).permute({1, 2, 0});  // [N, D, Sk]
  const Tensor values = v.to(at::kFloat).repeat_interleave(repeat, 1).transpose(0, 1);   // [N, Sk, D]
  Tensor scores = at::matmul(queries, keys) * scale;
  if (causal) {
    const auto positions = q.options().dtype(at::kLong);
    const Tensor last = at::arange(sq, positions).unsqueeze(1) + (sk - sq);
    scores = scores.masked_fill(at::arange(sk, positions).unsqueeze(0) > last,
                                -std::numeric_limits<double>::infinity());
  }
  const Tensor lse = at::logsumexp(scores, -1);  // [N, Sq]
  // A row without keys has lse −∞, and its weights are to be 0, not exp(−∞ + ∞).
  const Tensor weights = (scores - lse.masked_fill(lse.isinf(), 0).unsqueeze(-1)).exp();
  return {at::matmul(weights, values).transpose(0, 1).to(q.scalar_type()).contiguous(),
          lse.transpose(0, 1).contiguous()};
}

namespace {

using Signature = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&, double, bool);

std::tuple<Tensor, Tensor> composite(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                     bool causal) {
  auto [out, lse] = reference::attention(q, k, v, scale, causal);
  return {out, lse};
}

std::tuple<Tensor, Tensor> meta(const Tensor& q, const Tensor&, const Tensor&, double, bool) {
  return {at::empty(q.sizes(), q.options()),
          at::empty({q.size(0), q.size(1)}, q.options().dtype(at::kFloat))};
}

void check(const Tensor& q, const Tensor& k, const Tensor& v) {
  ensure(q.dim() == 3 && k.dim() == 3 && v.dim() == 3 && k.sizes() == v.sizes() && q.size(2) == k.size(2),
         "attention: expected q [Sq, N, D], k and v [Sk, M, D], got ", q.sizes(), ", ", k.sizes(), ", ",
         v.sizes());
  ensure(k.size(1) ? q.size(1) % k.size(1) == 0 : q.size(1) == 0,
         "attention: expected query heads to be a multiple of key heads, got ", q.size(1), " and ",
         k.size(1));
  ensure(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
         "attention: expected one dtype, got ", q.scalar_type(), ", ", k.scalar_type(), ", ",
         v.scalar_type());
  ensure(q.scalar_type() == at::kFloat || q.scalar_type() == at::kBFloat16,
         "attention: expected float32 or bfloat16, got ", q.scalar_type());
  for (const Tensor* t : {&q, &k, &v})
    ensure(t->numel() == 0 || t->stride(2) == 1 || t->size(2) == 1,
           "attention: expected a contiguous last dimension, got strides ", t->strides(), " for ",
           t->sizes());
}

}  // namespace

PartialAttention partial_attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                   bool causal) {
  check(q, k, v);
  if (q.numel() == 0 || k.numel() == 0)  // library kernels divide by these sizes
    return {at::zeros(q.sizes(), q.options()),
            at::full({q.size(0), q.size(1)}, -std::numeric_limits<double>::infinity(),
                     q.options().dtype(at::kFloat))};
  static const auto op = find_op<Signature>("orrery::attention");
  auto [out, lse] =
      op.call(q, k, v, scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q.size(2))), causal);
  return {out, lse};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal) {
  return partial_attention(q, k, v, scale, causal).out;
}

void merge(PartialAttention& into, const PartialAttention& more) {
  ensure(into.out.sizes() == more.out.sizes() && into.lse.sizes() == more.lse.sizes(),
         "attention: cannot merge ", into.out.sizes(), " with ", more.out.sizes());
  const Tensor largest = at::maximum(into.lse, more.lse);
  const Tensor base = largest.masked_fill(largest.isinf(), 0);  // −∞ − −∞ would not be a number
  const Tensor before = (into.lse - base).exp(), added = (more.lse - base).exp(), sum = before + added;
  const Tensor scale = sum.clamp_min(std::numeric_limits<float>::min()).reciprocal();
  into.lse = base + sum.log();
  // Products and sums one by one: lerp and addcmul round differently in the last elements of a vector loop,
  // and bits would depend on the number of threads.
  into.out = into.out.to(at::kFloat).mul_((before * scale).unsqueeze(-1));
  into.out.add_(more.out * (added * scale).unsqueeze(-1));
}

}  // namespace orrery::ops

TORCH_LIBRARY_FRAGMENT(orrery, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, float scale, bool causal) -> (Tensor out, Tensor lse)");
  m.impl("attention", c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(orrery::ops::composite));
  m.impl("attention", c10::DispatchKey::Meta, TORCH_FN(orrery::ops::meta));
}
