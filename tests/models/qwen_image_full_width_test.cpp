// One block of the published width (24 heads of 128) with random weights against spec qwen-image §2, written
// here in float64: sums over 3072 and 12288 channels are where float32 would lose digits.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/models/qwen_image/model.h"
#include "orrery/parallel/team.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using testing::max_abs_over_rms;

constexpr double kTolerance = 2e-5;  // largest deviation in units of rms, as for the small goldens
constexpr double kEps = 1e-6;

class RandomWeights final : public nn::Visitor<RandomWeights> {
 public:
  void tensor(const std::string& name, Tensor& t, const Shape& shape) {
    t = at::randn(shape, at::kFloat);
    if (shape.size() > 1)
      t.mul_(1 / std::sqrt(static_cast<double>(shape[1])));
    else if (name.ends_with(".bias"))
      t.mul_(0.02);
    else
      t.mul_(0.1).add_(1);
  }
};

struct Result {
  Tensor text, image, velocity;
};

// ---- The specification

Tensor wide(const Tensor& t) { return t.to(at::kDouble); }

Tensor exactly(const nn::Linear& w, const Tensor& x) { return at::linear(x, wide(w.weight), wide(w.bias)); }

Tensor layer_norm(const Tensor& x) {
  const Tensor centred = x - x.mean(-1, true);
  return centred / (centred.pow(2).mean(-1, true) + kEps).sqrt();
}

Tensor rms_norm(const Tensor& x, const Tensor& weight) {
  return x / (x.pow(2).mean(-1, true) + kEps).sqrt() * wide(weight);
}

using Position = std::array<double, 3>;  // frame, row, column

/// [S, D/2] (§2.6).
Tensor angles(const std::vector<Position>& positions, const nn::RopeAxes& axes) {
  std::vector<double> all;
  for (const auto& p : positions)
    for (size_t axis = 0; axis < p.size(); ++axis)
      for (int64_t j = 0; j < axes[axis] / 2; ++j)
        all.push_back(p[axis] * std::pow(1e4, -2 * static_cast<double>(j) / static_cast<double>(axes[axis])));
  return at::tensor(all, at::kDouble).view({std::ssize(positions), -1});
}

Tensor rotated(const Tensor& x, const Tensor& angles) {
  const auto pairs = x.unflatten(-1, {-1, 2});
  const Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  const Tensor cos = angles.cos().unsqueeze(1), sin = angles.sin().unsqueeze(1);
  return at::stack(std::vector<Tensor>{a * cos - b * sin, a * sin + b * cos}, -1).flatten(-2);
}

struct Rows {
  std::vector<Tensor> parts;  // shift1, scale1, gate1, shift2, scale2, gate2 (§2.4)
  Tensor modulated(const Tensor& x, size_t first) const {
    return layer_norm(x) * (1 + parts[first + 1]) + parts[first];
  }
};

struct Specification {
  const qwen_image::TransformerConfig& config;
  const qwen_image::TransformerWeights& weights;

  /// SiLU of the time's embedding (§2.3), whose frequencies and angles are float32 by definition.
  Tensor conditioning(float sigma) const {
    std::vector<float> sinusoid;
    for (const bool sine : {false, true})
      for (int k = 0; k < 128; ++k) {
        const float frequency = std::exp(static_cast<float>(k) * static_cast<float>(-std::log(1e4)) / 128);
        const float angle = 1000 * (sigma * frequency);
        sinusoid.push_back(sine ? std::sin(angle) : std::cos(angle));
      }
    const auto& w = weights.time_embed;
    const Tensor first = exactly(w.linear_1, wide(at::tensor(sinusoid).unsqueeze(0)));
    return at::silu(exactly(w.linear_2, at::silu(first)));
  }

  std::array<Tensor, 3> qkv(const qwen_image::Side& w, const Tensor& x, const Tensor& turn) const {
    const auto heads = [&](const nn::Linear& l) {
      return exactly(l, x).unflatten(-1, {-1, config.head_dim});
    };
    return {rotated(rms_norm(heads(w.q), w.norm_q), turn), rotated(rms_norm(heads(w.k), w.norm_k), turn),
            heads(w.v)};
  }

  /// §2.5: text before picture; [S, E].
  Tensor attention(const std::array<Tensor, 3>& text, const std::array<Tensor, 3>& image) const {
    std::array<Tensor, 3> joint;
    for (size_t i = 0; i < joint.size(); ++i)
      joint[i] = at::cat(std::vector<Tensor>{text[i], image[i]}, 0).transpose(0, 1);
    const auto& [q, k, v] = joint;
    const Tensor scores = q.matmul(k.transpose(1, 2)) / std::sqrt(static_cast<double>(config.head_dim));
    return at::softmax(scores, -1).matmul(v).transpose(0, 1).flatten(1);
  }

  static Tensor advanced(const qwen_image::Side& w, const Rows& m, const Tensor& x, const Tensor& y) {
    const Tensor attended = x + m.parts[2] * exactly(w.out, y);
    return attended + m.parts[5] * exactly(w.down, at::gelu(exactly(w.up, m.modulated(attended, 3)), "tanh"));
  }

  Result run(const Tensor& packed, const Tensor& embeds, float sigma, const std::vector<Position>& text_at,
             const std::vector<Position>& image_at) const {
    const auto& block = weights.blocks[0];
    const Tensor t = conditioning(sigma);
    const Rows mt{exactly(block.text.modulation, t).chunk(6, 1)};
    const Rows mi{exactly(block.image.modulation, t).chunk(6, 1)};
    const Tensor text = exactly(weights.text_in, rms_norm(wide(embeds), weights.text_norm));
    const Tensor image = exactly(weights.image_in, wide(packed));
    const Tensor y = attention(qkv(block.text, mt.modulated(text, 0), angles(text_at, config.rope_axes)),
                               qkv(block.image, mi.modulated(image, 0), angles(image_at, config.rope_axes)));
    Result r;
    r.text = advanced(block.text, mt, text, y.narrow(0, 0, text.size(0)));
    r.image = advanced(block.image, mi, image, y.narrow(0, text.size(0), image.size(0)));
    const auto head = exactly(weights.norm_out, t).chunk(2, 1);  // scale, then shift (§2.7)
    r.velocity = exactly(weights.proj_out, layer_norm(r.image) * (1 + head[0]) + head[1]);
    return r;
  }
};

// ---- The model

Result run(const qwen_image::Transformer& model, const std::vector<nn::PictureSize>& pictures,
           const Tensor& packed, const Tensor& embeds, float sigma) {
  const auto grid = model.grid(pictures);
  const auto prepared = model.prepare(grid, embeds);
  const auto step = model.steps({sigma})[0];
  const auto tokens = model.tokens(grid, packed);
  Result r;
  r.velocity = parallel::Team({}, {}, 2).run([&](const parallel::Context& ctx) {
    auto stream = model.embed(ctx, prepared, step, tokens);
    model.block(ctx, prepared, step, 0, stream);
    r.text = stream.text.x, r.image = stream.image.x;
    return model.unembed(ctx, step, stream);
  });
  return r;
}

TEST(QwenImageFullWidth, OneBlockIsTheSpecifications) {
  const c10::InferenceMode guard;
  at::manual_seed(11);
  qwen_image::TransformerConfig config;
  config.layers = 1;
  ASSERT_EQ(config.width(), 3072);
  qwen_image::TransformerWeights weights;
  RandomWeights random;
  bind(random, weights, config);
  // Behind the last block nobody looks at the text, so the model believes in a second one, which is never
  // run.
  config.layers = 2;

  constexpr int64_t kText = 7, kRows = 3, kColumns = 5;
  const Tensor packed = at::randn({kRows * kColumns, config.token_channels()});
  const Tensor embeds = at::randn({kText, config.text_width});
  std::vector<Position> text_at, image_at;
  for (int s = 0; s < kText; ++s) text_at.push_back({2.0 + s, 2.0 + s, 2.0 + s});  // from max(3 / 2, 5 / 2)
  for (int y = -2; y < 1; ++y)
    for (int x = -3; x < 2; ++x) image_at.push_back({0, double(y), double(x)});

  constexpr float kSigma = 0.7f;
  const auto expected = Specification{config, weights}.run(packed, embeds, kSigma, text_at, image_at);
  const auto got = run({config, weights}, {{kRows, kColumns}}, packed, embeds, kSigma);
  for (const auto& [name, part] :
       {std::pair{"text", &Result::text}, {"image", &Result::image}, {"velocity", &Result::velocity}}) {
    const double error = max_abs_over_rms(got.*part, expected.*part);
    EXPECT_LE(error, kTolerance) << name;
    std::printf("%s: %.2g of rms\n", name, error);
  }
}

}  // namespace
}  // namespace orrery
