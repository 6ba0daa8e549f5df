// oneDNN's convolution, called directly: at::conv2d and conv3d choose between back ends by size and thread
// count, and with the back end the order of additions changes.
#include "orrery/ops/conv.h"

#include <ATen/ops/mkldnn_convolution.h>
#include <torch/library.h>

#include "orrery/ops/library.h"

namespace orrery::ops::cpu {
namespace {

using Scalars = torch::List<std::optional<at::Scalar>>;
using Text = std::optional<std::string_view>;
using Binary = Tensor&(Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, at::IntArrayRef,
                       at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view, std::optional<at::Scalar>,
                       Text, Scalars, Text);

constexpr int64_t kNone[] = {0, 0, 0}, kOne[] = {1, 1, 1};

// [F, H, W, C] contiguous and [1, C, F, H, W] channels-last are the same bytes.
Tensor to_torch(const Tensor& x) { return x.permute({3, 0, 1, 2}).unsqueeze(0); }
Tensor from_torch(const Tensor& y) { return y[0].permute({1, 2, 3, 0}).contiguous(); }
Tensor channels_last(const Tensor& weight) { return weight.contiguous(at::MemoryFormat::ChannelsLast3d); }

Tensor conv_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, at::IntArrayRef stride) {
  return from_torch(at::mkldnn_convolution(to_torch(x), channels_last(weight), bias, kNone, stride, kOne, 1));
}

void conv_add_cpu(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  // oneDNN's fused sum is coarser in bfloat16: on a whole encoder its error is 1.7 times that of separate
  // steps.
  if (x.scalar_type() != at::kFloat) {
    y.add_(conv_cpu(x, weight, bias, kOne));
    return;
  }
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("mkldnn::_convolution_pointwise_", "binary")
                             .typed<Binary>();
  Tensor sum = to_torch(y);
  op.call(sum, to_torch(x), channels_last(weight), bias, kNone, kOne, kOne, 1, "add", 1.0, std::nullopt,
          Scalars(), std::nullopt);
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) {
  m.impl("conv", TORCH_FN(orrery::ops::cpu::conv_cpu));
  m.impl("conv_add_", TORCH_FN(orrery::ops::cpu::conv_add_cpu));
}
