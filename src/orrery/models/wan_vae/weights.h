#pragma once
// Names of diffusers' AutoencoderKLWan; official names are mapped to them before (spec cosmos-predict2.5
// §8.5).
#include <array>

#include "orrery/models/wan_vae/config.h"
#include "orrery/nn/bind.h"

namespace orrery::wan_vae {

using Kernel = std::array<int64_t, 3>;  // frames, rows, columns

constexpr Kernel kSpatioTemporal = {3, 3, 3}, kTemporal = {3, 1, 1};

/// A convolution. As loaded, `weight` is [O, I, kt, kh, kw]; wan_vae.h's prepare_… bring it into the form
/// that is computed with: the same in channels-last order, or ops::winograd_weight's.
struct Conv {
  enum class Form { kLoaded, kDirect, kWinograd };
  Tensor weight, bias;
  Form form = Form::kLoaded;
};

/// A resampler's 3×3 convolution of single frames: [O, I, 3, 3] as loaded; [O, I, 1, 3, 3] or
/// ops::upsample_weight's form once prepared.
struct FrameConv {
  Tensor weight, bias;
};

/// A 1×1 convolution, a linear layer over channels: [O, I] once prepared.
struct Pointwise {
  Tensor weight, bias;
};

struct ResidualBlock {
  Tensor norm1, norm2;  // [C, 1, 1, 1]; [C] once prepared, as all norms
  Conv conv1, conv2;
  Pointwise shortcut;  // undefined if the number of channels stays
};

struct AttentionBlock {
  Tensor norm;
  Pointwise to_qkv, proj;
};

struct MidBlock {
  std::vector<ResidualBlock> resnets;
  std::vector<AttentionBlock> attentions;
};

/// Changes rows and columns by 2, and frames if `time_conv` is defined.
struct Resampler {
  FrameConv conv;
  Conv time_conv;
};

struct EncoderLevel {
  std::vector<ResidualBlock> resnets;
  Resampler downsampler;  // undefined at the last level
};

struct DecoderLevel {
  std::vector<ResidualBlock> resnets;
  Resampler upsampler;  // undefined at the last level
};

struct Encoder {
  Conv conv_in;
  std::vector<EncoderLevel> levels;
  MidBlock mid;
  Tensor norm_out;
  Conv conv_out;
};

struct Decoder {
  Conv conv_in;
  MidBlock mid;
  std::vector<DecoderLevel> levels;
  Tensor norm_out;
  Conv conv_out;
};

struct Weights {
  Encoder encoder;
  Decoder decoder;
  Pointwise quant, post_quant;
};

template <class B>
void bind(B& b, Conv& w, int64_t out, int64_t in, Kernel kernel) {
  b("weight", w.weight, Shape{out, in, kernel[0], kernel[1], kernel[2]});
  b("bias", w.bias, Shape{out});
}

template <class B>
void bind(B& b, FrameConv& w, int64_t out, int64_t in) {
  b("weight", w.weight, Shape{out, in, 3, 3});
  b("bias", w.bias, Shape{out});
}

/// ones: how many dimensions of size 1 the checkpoint adds.
template <class B>
void bind(B& b, Pointwise& w, int64_t out, int64_t in, int ones) {
  Shape shape = {out, in};
  shape.resize(static_cast<size_t>(2 + ones), 1);
  b("weight", w.weight, shape);
  b("bias", w.bias, Shape{out});
}

template <class B>
void bind(B& b, ResidualBlock& w, int64_t in, int64_t out) {
  b("norm1.gamma", w.norm1, Shape{in, 1, 1, 1});
  b("conv1", w.conv1, out, in, kSpatioTemporal);
  b("norm2.gamma", w.norm2, Shape{out, 1, 1, 1});
  b("conv2", w.conv2, out, out, kSpatioTemporal);
  if (in != out) b("conv_shortcut", w.shortcut, out, in, 3);
}

template <class B>
void bind(B& b, AttentionBlock& w, int64_t channels) {
  b("norm.gamma", w.norm, Shape{channels, 1, 1});
  b("to_qkv", w.to_qkv, 3 * channels, channels, 2);
  b("proj", w.proj, channels, channels, 2);
}

template <class B>
void bind(B& b, MidBlock& w, int64_t channels) {
  b.list("resnets", w.resnets, 2, channels, channels);
  b.list("attentions", w.attentions, 1, channels);
}

/// Upsamplers halve the channels (out = in / 2), their temporal convolution doubles them first (time_out = 2
/// · in).
template <class B>
void bind(B& b, Resampler& w, int64_t out, int64_t in, int64_t time_out, bool temporal) {
  b("resample.1", w.conv, out, in);
  if (temporal) b("time_conv", w.time_conv, time_out, in, kTemporal);
}

/// diffusers counts residual blocks and downsamplers of all levels in one list.
template <class B>
void bind(B& b, Encoder& w, const Config& c) {
  b("conv_in", w.conv_in, c.base_dim, c.channels, kSpatioTemporal);
  w.levels.resize(static_cast<size_t>(c.levels()));
  int64_t index = 0, channels = c.base_dim;
  const auto next = [&] { return "down_blocks." + std::to_string(index++); };
  for (int64_t i = 0; i < c.levels(); ++i) {
    EncoderLevel& level = w.levels[static_cast<size_t>(i)];
    level.resnets.resize(static_cast<size_t>(c.res_blocks));
    for (ResidualBlock& block : level.resnets) {
      b(next(), block, channels, c.dim(i));
      channels = c.dim(i);
    }
    if (i + 1 < c.levels()) b(next(), level.downsampler, channels, channels, channels, c.temporal(i));
  }
  b("mid_block", w.mid, channels);
  b("norm_out.gamma", w.norm_out, Shape{channels, 1, 1, 1});
  b("conv_out", w.conv_out, 2 * c.z_dim, channels, kSpatioTemporal);
}

template <class B>
void bind(B& b, Decoder& w, const Config& c) {
  int64_t channels = c.dim(c.levels() - 1);
  b("conv_in", w.conv_in, channels, c.z_dim, kSpatioTemporal);
  b("mid_block", w.mid, channels);
  w.levels.resize(static_cast<size_t>(c.levels()));
  for (int64_t i = 0; i < c.levels(); ++i) {
    DecoderLevel& level = w.levels[static_cast<size_t>(i)];
    const std::string name = "up_blocks." + std::to_string(i);
    const int64_t out = c.dim(c.levels() - 1 - i);
    level.resnets.resize(static_cast<size_t>(c.res_blocks + 1));
    for (size_t j = 0; j < level.resnets.size(); ++j) {
      b(name + ".resnets." + std::to_string(j), level.resnets[j], channels, out);
      channels = out;
    }
    if (i + 1 == c.levels()) continue;
    b(name + ".upsamplers.0", level.upsampler, channels / 2, channels, 2 * channels,
      c.temporal(c.levels() - 2 - i));
    channels /= 2;
  }
  b("norm_out.gamma", w.norm_out, Shape{channels, 1, 1, 1});
  b("conv_out", w.conv_out, c.channels, channels, kSpatioTemporal);
}

template <class B>
void bind(B& b, Weights& w, const Config& c) {
  b("encoder", w.encoder, c);
  b("decoder", w.decoder, c);
  b("quant_conv", w.quant, 2 * c.z_dim, 2 * c.z_dim, 3);
  b("post_quant_conv", w.post_quant, c.z_dim, c.z_dim, 3);
}

}  // namespace orrery::wan_vae
