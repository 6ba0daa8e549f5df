#include "orrery/models/wan_vae/blocks.h"

#include <ATen/ops/empty_like.h>

#include "orrery/ops/attention.h"
#include "orrery/ops/channel_norm.h"
#include "orrery/ops/conv.h"
#include "orrery/ops/linear.h"
#include "orrery/ops/upsample.h"

namespace orrery::wan_vae {
namespace {

constexpr Border kAround = {1, 1}, kBehind = {0, 1}, kNoBorder = {0, 0};

Tensor copied(const Tensor& x, Border border, Memory& memory) {
  return causal_input(memory, x.sizes(), border, x.options(), [&](const Tensor& out) { out.copy_(x); });
}

/// silu(norm(x)) goes straight into the convolution's input.
Tensor normed(const Tensor& norm, const Tensor& x, Memory& memory) {
  return causal_input(memory, x.sizes(), kAround, x.options(),
                      [&](const Tensor& out) { ops::channel_norm(x, norm, /*silu=*/true, out); });
}

Tensor attention(const AttentionBlock& w, const Tensor& x) {
  const Tensor y = at::empty_like(x);
  ops::channel_norm(x, w.norm, /*silu=*/false, y);
  const Tensor qkv = pointwise(w.to_qkv, y);
  for (int64_t f = 0; f < x.size(0); ++f) {
    const auto one_head = qkv[f].flatten(0, 1).unsqueeze(1).chunk(3, -1);  // q, k, v: [H·W, 1, C]
    y[f].copy_(ops::attention(one_head[0], one_head[1], one_head[2]).view(y[f].sizes()));
  }
  return x.add_(pointwise(w.proj, y));
}

}  // namespace

Tensor pointwise(const Pointwise& w, const Tensor& x) { return ops::linear(x, w.weight, w.bias); }

Tensor conv_block(const Conv& w, const Tensor& x, Memory& memory) {
  return apply(w, copied(x, kAround, memory));
}

Tensor norm_conv(const Tensor& norm, const Conv& w, const Tensor& x, Memory& memory) {
  return apply(w, normed(norm, x, memory));
}

Tensor residual(const ResidualBlock& w, Tensor x, Memory& memory) {
  Tensor y = norm_conv(w.norm1, w.conv1, x, memory);
  if (w.shortcut.weight.defined()) x = pointwise(w.shortcut, x);
  const Tensor input = normed(w.norm2, y, memory);
  y.reset();  // large: not needed while the next convolution runs
  apply_add_(x, w.conv2, input);
  return x;
}

Tensor mid_block(const MidBlock& w, Tensor x, Memory& memory) {
  x = residual(w.resnets[0], std::move(x), memory);
  for (size_t i = 0; i < w.attentions.size(); ++i)
    x = residual(w.resnets[i + 1], attention(w.attentions[i], x), memory);
  return x;
}

Tensor downsample(const Resampler& w, const Tensor& x, Memory& memory) {
  const Tensor input = bordered(x.sizes(), kBehind, x.options());
  interior(input, kBehind).copy_(x);
  const Tensor y = ops::conv(input, w.conv.weight, w.conv.bias, {1, 2, 2});
  if (!w.time_conv.weight.defined()) return y;

  // Stride 2 over [last frame of the past, this chunk's frames]; the clip's first frame is only that past.
  Tensor& slot = memory.next();
  if (memory.first()) {
    memory.remember(slot, y);
    return y;
  }
  const Tensor frames = bordered({1 + y.size(0), y.size(1), y.size(2), y.size(3)}, kNoBorder, y.options());
  frames.narrow(0, 0, 1).copy_(slot);
  frames.narrow(0, 1, y.size(0)).copy_(y);
  memory.remember(slot, y.narrow(0, y.size(0) - 1, 1));
  return ops::conv(frames, w.time_conv.weight, w.time_conv.bias, {2, 1, 1});
}

Tensor upsample(const Resampler& w, const Tensor& x, Memory& memory) {
  const int64_t frames = x.size(0), rows = x.size(1), columns = x.size(2), channels = x.size(3);
  Tensor y = x.unsqueeze(1);  // [F, frames made of each, H, W, C]
  if (w.time_conv.weight.defined()) {
    if (memory.first())
      memory.next();  // stays empty: the second frame does not see the first (spec §8.3)
    else
      y = apply(w.time_conv, copied(x, kNoBorder, memory))
              .view({frames, rows, columns, 2, channels})
              .permute({0, 3, 1, 2, 4});
  }
  const Tensor input = bordered({frames * y.size(1), rows, columns, channels}, kAround, x.options());
  interior(input, kAround).unflatten(0, {frames, y.size(1)}).copy_(y);
  return ops::upsample_conv(input, w.conv.weight, w.conv.bias);
}

}  // namespace orrery::wan_vae
