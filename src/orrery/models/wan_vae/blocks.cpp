#include "orrery/models/wan_vae/blocks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>

#include "orrery/ops/attention.h"
#include "orrery/ops/channel_norm.h"
#include "orrery/ops/conv.h"
#include "orrery/ops/linear.h"
#include "orrery/ops/upsample.h"

namespace orrery::wan_vae {
namespace {

constexpr Border kAround = {1, 1}, kBehind = {0, 1}, kNoBorder = {0, 0};

Tensor copied(const Tensor& x, Border border, Surroundings& around) {
  return causal_input(around, x.sizes(), border, x.options(), [&](const Tensor& out) { out.copy_(x); });
}

/// silu(norm(x)) goes straight into the convolution's input.
Tensor normed(const Tensor& norm, const Tensor& x, Surroundings& around) {
  return causal_input(around, x.sizes(), kAround, x.options(),
                      [&](const Tensor& out) { ops::channel_norm(x, norm, /*silu=*/true, out); });
}

/// Queries are those of the rows at hand, keys and values the whole frame's.
Tensor attention(const AttentionBlock& w, const Tensor& x, const Surroundings& around) {
  const Tensor y = at::empty_like(x);
  ops::channel_norm(x, w.norm, /*silu=*/false, y);
  const int64_t channels = x.size(3);
  const Tensor qkv = pointwise(w.to_qkv, y), queries = qkv.narrow(3, 0, channels);
  const Tensor keys_values = around.rows().gather(qkv.narrow(3, channels, 2 * channels), /*dim=*/1);
  const auto one_head = [](const Tensor& frame) { return frame.flatten(0, 1).unsqueeze(1); };  // [H·W, 1, C]
  for (int64_t f = 0; f < x.size(0); ++f) {
    const auto kv = one_head(keys_values[f]).chunk(2, -1);
    y[f].copy_(ops::attention(one_head(queries[f]), kv[0], kv[1]).view(y[f].sizes()));
  }
  return x.add_(pointwise(w.proj, y));
}

}  // namespace

Tensor pointwise(const Pointwise& w, const Tensor& x) { return ops::linear(x, w.weight, w.bias); }

Tensor conv_block(const Conv& w, const Tensor& x, Surroundings& around) {
  return apply(w, copied(x, kAround, around));
}

Tensor norm_conv(const Tensor& norm, const Conv& w, const Tensor& x, Surroundings& around) {
  return apply(w, normed(norm, x, around));
}

Tensor residual(const ResidualBlock& w, Tensor x, Surroundings& around) {
  Tensor y = norm_conv(w.norm1, w.conv1, x, around);
  if (w.shortcut.weight.defined()) x = pointwise(w.shortcut, x);
  const Tensor input = normed(w.norm2, y, around);
  y.reset();  // large: not needed while the next convolution runs
  apply_add_(x, w.conv2, input);
  return x;
}

Tensor mid_block(const MidBlock& w, Tensor x, Surroundings& around) {
  x = residual(w.resnets[0], std::move(x), around);
  for (size_t i = 0; i < w.attentions.size(); ++i)
    x = residual(w.resnets[i + 1], attention(w.attentions[i], x, around), around);
  return x;
}

Tensor downsample(const Resampler& w, const Tensor& x, Surroundings& around) {
  const Tensor input =
      bordered(around, x.sizes(), kBehind, x.options(), [&](const Tensor& pixels) { pixels.copy_(x); });
  const Tensor y = ops::conv(input, w.conv.weight, w.conv.bias, {1, 2, 2});
  if (!w.time_conv.weight.defined()) return y;

  // Stride 2 over [last frame of the past, this chunk's frames]; the clip's first frame is only that past.
  Tensor& slot = around.next();
  if (around.first()) {
    around.remember(slot, y);
    return y;
  }
  const Tensor frames = at::cat({slot, y}, 0);
  around.remember(slot, y.narrow(0, y.size(0) - 1, 1));
  return ops::conv(frames, w.time_conv.weight, w.time_conv.bias, {2, 1, 1});
}

Tensor upsample(const Resampler& w, const Tensor& x, Surroundings& around) {
  const int64_t frames = x.size(0), rows = x.size(1), columns = x.size(2), channels = x.size(3);
  Tensor y = x.unsqueeze(1);  // [F, frames made of each, H, W, C]
  if (w.time_conv.weight.defined()) {
    if (around.first())
      around.next();  // stays empty: the second frame does not see the first (spec §8.3)
    else
      y = apply(w.time_conv, copied(x, kNoBorder, around))
              .view({frames, rows, columns, 2, channels})
              .permute({0, 3, 1, 2, 4});
  }
  const Tensor input = bordered(around, {frames * y.size(1), rows, columns, channels}, kAround, x.options(),
                                [&](const Tensor& pixels) {
                                  pixels.unflatten(0, {frames, y.size(1)}).copy_(y);
                                });
  return ops::upsample_conv(input, w.conv.weight, w.conv.bias);
}

}  // namespace orrery::wan_vae
