#include "orrery/ops/upsample.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <array>

#include "orrery/base/error.h"
#include "orrery/ops/conv.h"

namespace orrery::ops {
namespace {

/// The two taps of output parity 0 and 1 along `dim`: (w₀, w₁+w₂) and (w₀+w₁, w₂).
std::array<Tensor, 2> taps(const Tensor& w, int64_t dim) {
  const Tensor a = w.select(dim, 0), b = w.select(dim, 1), c = w.select(dim, 2);
  return {at::stack({a, b + c}, dim), at::stack({a + b, c}, dim)};
}

}  // namespace

Tensor upsample_weight(const Tensor& weight) {
  ensure(weight.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3,
         "upsample_weight: expected a weight [O, I, 3, 3], got ", weight.sizes());
  std::vector<Tensor> parities;
  for (const Tensor& rows : taps(weight.to(at::kFloat), 2))
    for (const Tensor& both : taps(rows, 3)) parities.push_back(both);
  return at::cat(parities, 0).unsqueeze(2).to(weight.scalar_type());
}

Tensor upsample_conv(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  ensure(x.dim() == 4 && x.size(1) >= 2 && x.size(2) > 2, "upsample_conv: expected x [F, H+2, W+2, I], got ",
         x.sizes());
  const int64_t frames = x.size(0), rows = x.size(1) - 2, columns = x.size(2) - 2, channels = bias.size(0);
  ensure(weight.dim() == 5 && weight.size(0) == 4 * channels, "upsample_conv: expected a weight [",
         4 * channels, ", I, 1, 2, 2], got ", weight.sizes());
  const Tensor parities = conv(x, weight, bias.repeat({4}));  // [F, H+1, W+1, 4·O]
  const Tensor out = at::empty({frames, rows, 2, columns, 2, channels}, parities.options());
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j)
      out.select(2, i).select(3, j).copy_(
          parities.narrow(1, i, rows).narrow(2, j, columns).narrow(3, (2 * i + j) * channels, channels));
  return out.view({frames, 2 * rows, 2 * columns, channels});
}

}  // namespace orrery::ops
