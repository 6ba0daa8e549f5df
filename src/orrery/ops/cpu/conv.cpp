// Float32: patches are gathered and multiplied by ops::linear, whose bits do not depend on the rows beside a
// row. oneDNN's convolution chooses by size, threads and caches how it divides the sum over input channels:
// on some CPUs a part of a picture then has other bits than the whole. bfloat16 is oneDNN's, called directly
// (at::conv3d chooses between back ends by size and thread count, too).
#include "orrery/ops/conv.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mkldnn_convolution.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

#include "orrery/ops/library.h"
#include "orrery/ops/linear.h"

namespace orrery::ops::cpu {
namespace {

constexpr int64_t kNone[] = {0, 0, 0}, kOne[] = {1, 1, 1};
constexpr int64_t kGathered = int64_t{8} << 20;  // bytes of patches at a time: what caches hold

Tensor onednn(const Tensor& x, const Tensor& weight, const Tensor& bias, at::IntArrayRef stride) {
  // [F, H, W, C] contiguous and [1, C, F, H, W] channels-last are the same bytes.
  const Tensor y = at::mkldnn_convolution(x.permute({3, 0, 1, 2}).unsqueeze(0),
                                          weight.contiguous(at::MemoryFormat::ChannelsLast3d), bias, kNone,
                                          stride, kOne, 1);
  return y[0].permute({1, 2, 3, 0}).contiguous();
}

/// Copies what the kernel sees of output pixels [begin, end) to rows of `to`: [kt, kh, kw · I] each.
class Gather {
 public:
  Gather(const Tensor& x, const Tensor& weight, at::IntArrayRef stride, at::IntArrayRef out)
      : from_(x.const_data_ptr<float>()),
        height_(x.size(1)),
        width_(x.size(2)),
        channels_(x.size(3)),
        frames_(weight.size(2)),
        rows_(weight.size(3)),
        run_(weight.size(4) * channels_),
        stride_{stride[0], stride[1], stride[2]},
        out_rows_(out[1]),
        out_columns_(out[2]) {}

  void operator()(int64_t begin, int64_t end, float* to) const {
    at::parallel_for(0, end - begin, 16, [&](int64_t first, int64_t last) {
      float* at = to + first * frames_ * rows_ * run_;
      for (int64_t pixel = begin + first; pixel < begin + last; ++pixel) {
        const int64_t column = pixel % out_columns_ * stride_[2];
        const int64_t row = pixel / out_columns_ % out_rows_ * stride_[1];
        const int64_t frame = pixel / out_columns_ / out_rows_ * stride_[0];
        for (int64_t t = frame; t < frame + frames_; ++t)
          for (int64_t r = row; r < row + rows_; ++r, at += run_)
            std::memcpy(at, from_ + ((t * height_ + r) * width_ + column) * channels_,
                        static_cast<size_t>(run_) * sizeof(float));
      }
    });
  }

 private:
  const float* from_;
  int64_t height_, width_, channels_, frames_, rows_, run_;
  int64_t stride_[3];
  int64_t out_rows_, out_columns_;
};

Tensor conv_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, at::IntArrayRef stride) {
  if (x.scalar_type() != at::kFloat) return onednn(x, weight, bias, stride);
  Shape out(3);
  for (int i = 0; i < 3; ++i) out[i] = (x.size(i) - weight.size(i + 2)) / stride[i] + 1;
  const int64_t pixels = out[0] * out[1] * out[2], channels = weight.size(0);
  const Tensor matrix = weight.permute({0, 2, 3, 4, 1}).reshape({channels, -1});
  out.push_back(channels);
  if (matrix.size(1) == x.size(3) && stride == at::IntArrayRef(kOne))
    return linear(x.view({pixels, -1}), matrix, bias).view(out);
  const Tensor y = at::empty({pixels, channels}, x.options());
  const Gather gather(x, weight, stride, out);
  const int64_t block = std::clamp<int64_t>(kGathered / 4 / matrix.size(1), 1, std::max<int64_t>(pixels, 1));
  const Tensor patches = at::empty({block, matrix.size(1)}, x.options());
  for (int64_t begin = 0; begin < pixels; begin += block) {
    const int64_t count = std::min(block, pixels - begin);
    gather(begin, begin + count, patches.mutable_data_ptr<float>());
    y.narrow(0, begin, count).copy_(linear(patches.narrow(0, 0, count), matrix, bias));
  }
  return y.view(out);
}

void conv_add_cpu(const Tensor& y, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  y.add_(conv_cpu(x, weight, bias, kOne));
}

}  // namespace
}  // namespace orrery::ops::cpu

TORCH_LIBRARY_IMPL(orrery, CPU, m) {
  m.impl("conv", TORCH_FN(orrery::ops::cpu::conv_cpu));
  m.impl("conv_add_", TORCH_FN(orrery::ops::cpu::conv_add_cpu));
}
