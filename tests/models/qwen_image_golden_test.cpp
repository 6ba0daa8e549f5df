// The Qwen-Image transformer against QwenImageTransformer2DModel of diffusers (tests/golden/qwen_dit): every
// case of every folder, each sample of a batch by itself.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

#include "orrery/models/load.h"
#include "orrery/models/qwen_image/model.h"
#include "orrery/parallel/team.h"
#include "orrery/platform/cpu.h"
#include "orrery/weights/source.h"
#include "tests/support/every_weight.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;
using qwen_image::PictureSize;

struct Sample {
  Json info;  // of its case
  std::vector<PictureSize> pictures;
  Tensor packed, embeds;
  float time = 0;
  std::map<std::string, Tensor> stored;  // of its case: all tensors, for this sample
};

/// A folder's model description and the samples of all its cases.
struct Folder {
  explicit Folder(const fs::path& folder)
      : path(folder),
        config(qwen_image::read_transformer_config(folder / "transformer/config.json")),
        description(read_json(folder / "case.json")) {
    const auto tensors = read_tensors(folder / "golden.safetensors");
    for (const Json& c : description["cases"])
      for (int64_t b = 0; b < std::ssize(c["text_lengths"]); ++b) {
        Sample s;
        s.info = c;
        for (const Json& shape : c["img_shapes"]) s.pictures.push_back({shape[1], shape[2]});
        const std::string prefix = c["name"].get<std::string>() + "/";
        for (const auto& [name, tensor] : tensors)
          if (name.starts_with(prefix))
            s.stored[name.substr(prefix.size())] =
                name.ends_with("_angles") ? tensor : tensor[b];  // angles are those of any sample
        s.packed = s.stored.at("hidden_states");
        s.embeds = s.stored.at("encoder_hidden_states").narrow(0, 0, c["text_lengths"][b]);
        s.time = s.stored.at("timestep").item<float>();
        samples.push_back(std::move(s));
      }
  }

  double tolerance() const { return description["tolerance"]["float32"]["max_abs_over_rms"]; }

  qwen_image::Transformer open(at::ScalarType dtype, weights::Storage storage) const {
    return open(weights::open_weights(path / "transformer"), dtype, storage);
  }
  qwen_image::Transformer open(weights::TensorMap tensors, at::ScalarType dtype,
                               weights::Storage storage) const {
    return {config, load<qwen_image::TransformerWeights>(std::move(tensors), config, dtype, storage, path)};
  }

  fs::path path;
  qwen_image::TransformerConfig config;
  Json description;
  std::vector<Sample> samples;
};

std::vector<Folder> folders() {
  std::vector<Folder> all;
  for (const auto& path : golden_folders("qwen_dit")) all.emplace_back(path);
  EXPECT_FALSE(all.empty());
  return all;
}

Tensor velocity(const qwen_image::Transformer& model, const Sample& s, const config::Factors& factors = {},
                parallel::BlockPolicy* observer = nullptr) {
  const c10::InferenceMode guard;
  const auto grid = model.grid(s.pictures);
  const auto prepared = model.prepare(grid, s.embeds);
  const auto step = model.steps({s.time})[0];
  const auto tokens = model.tokens(grid, s.packed);
  const parallel::Team team({}, factors, 2);
  return team.run([&](const parallel::Context& ctx) {
    parallel::BlockPolicy none;
    return parallel::run(ctx, model, prepared, step, tokens, observer ? *observer : none);
  });
}

class QwenImageGolden : public ::testing::TestWithParam<weights::Storage> {};

TEST_P(QwenImageGolden, Velocity) {
  double worst = 0;
  for (const auto& folder : folders()) {
    const auto model = folder.open(at::kFloat, GetParam());
    ASSERT_FALSE(folder.samples.empty());
    for (const auto& s : folder.samples) {
      const double error = max_abs_over_rms(velocity(model, s), s.stored.at("velocity"));
      EXPECT_LE(error, folder.tolerance()) << folder.path << " " << s.info["name"];
      worst = std::max(worst, error);
    }
  }
  std::printf("largest deviation: %.2g of rms\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Weights, QwenImageGolden,
                         ::testing::Values(weights::Storage::kWidened, weights::Storage::kMapped),
                         [](const auto& test) {
                           return test.param == weights::Storage::kMapped ? "Mapped" : "Widened";
                         });

// Text rows that older pipelines padded with zeros and attended to are ordinary tokens.
TEST(QwenImageGolden, PadsThatAreAttended) {
  int checked = 0;
  for (const auto& folder : folders()) {
    const auto model = folder.open(at::kFloat, weights::Storage::kMapped);
    for (Sample s : folder.samples) {
      const auto expected = s.stored.find("velocity_without_mask");
      if (expected == s.stored.end()) continue;
      s.embeds = s.stored.at("encoder_hidden_states");
      EXPECT_LE(max_abs_over_rms(velocity(model, s), expected->second), folder.tolerance())
          << folder.path << " " << s.info["name"];
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

/// Keeps the image stream behind each block.
class Trace final : public parallel::BlockPolicy {
 public:
  void step(int64_t, const Tensor& state, const std::function<void()>& compute) override {
    compute();
    states.push_back(state.clone());
  }
  std::vector<Tensor> states;
};

TEST(QwenImageGolden, AnglesTextAndBlocks) {
  const auto table = [](const Tensor& angles) {
    return at::cat(std::vector<Tensor>{angles.cos(), angles.sin()}, 1);
  };
  int checked = 0;
  for (const auto& folder : folders()) {
    const auto model = folder.open(at::kFloat, weights::Storage::kMapped);
    for (const auto& s : folder.samples) {
      if (!s.stored.contains("trace.txt_in")) continue;
      const auto expect_near = [&](const Tensor& got, const std::string& name) {
        EXPECT_LE(max_abs_over_rms(got, s.stored.at("trace." + name)), folder.tolerance())
            << folder.path << " " << name;
      };
      const auto grid = model.grid(s.pictures);
      const auto prepared = model.prepare(grid, s.embeds);
      EXPECT_LE(max_abs(grid.rope, table(s.stored.at("trace.rope_image_angles"))), 1e-6);
      EXPECT_LE(max_abs(prepared.text_rope, table(s.stored.at("trace.rope_text_angles"))), 1e-6);
      expect_near(prepared.text, "txt_in");
      Trace trace;
      velocity(model, s, {}, &trace);
      ASSERT_EQ(std::ssize(trace.states), folder.config.layers);
      for (size_t i = 0; i < trace.states.size(); ++i)
        expect_near(trace.states[i], "block" + std::to_string(i) + ".image");
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// One rank against several: tokens and heads that do not divide, more ranks than heads, ranks without tokens.
TEST(QwenImageGolden, RanksGiveTheSameBits) {
  int compared = 0;
  for (const auto& folder : folders()) {
    const auto model = folder.open(at::kFloat, weights::Storage::kMapped);
    for (const auto& s : folder.samples) {
      const auto one = velocity(model, s);
      for (const int64_t ranks : {2, 3, 4, 5, 8}) {
        EXPECT_TRUE(at::equal(velocity(model, s, {.cfg = 1, .ulysses = ranks, .ring = 1}), one))
            << folder.path << " " << s.info["name"] << " on " << ranks << " ranks";
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 15);
}

// A ring adds partial results in another order; through two blocks that stays far below this.
TEST(QwenImageGolden, RingsGiveTheSameVelocity) {
  constexpr double kPerForward = 1e-5;
  int compared = 0;
  for (const auto& folder : folders()) {
    const auto model = folder.open(at::kFloat, weights::Storage::kMapped);
    for (const auto& s : folder.samples) {
      const auto one = velocity(model, s);
      for (const auto& [ulysses, ring] : {std::pair{1, 2}, {1, 3}, {1, 5}, {2, 2}, {3, 2}, {2, 4}}) {
        const auto ringed = velocity(model, s, {.cfg = 1, .ulysses = ulysses, .ring = ring});
        EXPECT_LE(((ringed - one).norm() / one.norm()).item<double>(), kPerForward)
            << folder.path << " " << s.info["name"] << " on u" << ulysses << ",r" << ring;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 15);
}

// But for those that act on the last block's text only: the reference found them without effect, too.
TEST(QwenImageGolden, EveryWeightMatters) {
  const Folder folder(golden_folders("qwen_dit").at(0));
  const auto& sample = folder.samples.back();
  const std::set<std::string> idle = folder.description["sensitivity"]["tensors_without_effect"];
  const auto tensors = weights::open_weights(folder.path / "transformer");
  const auto expected = velocity(folder.open(tensors, at::kFloat, weights::Storage::kWidened), sample);
  for_each_disturbed(tensors, [&](const std::string& name, const weights::TensorMap& changed) {
    const auto got = velocity(folder.open(changed, at::kFloat, weights::Storage::kWidened), sample);
    if (idle.contains(name)) {
      EXPECT_TRUE(at::equal(got, expected)) << name;
    } else {
      EXPECT_GT(max_abs_over_rms(got, expected), folder.tolerance()) << name;
    }
  });
}

TEST(QwenImageGolden, Bfloat16) {
  if (platform::preferred_dtype(platform::detect_cpu()) != at::kBFloat16)
    GTEST_SKIP() << "this CPU computes bfloat16 in software";
  int checked = 0;
  for (const auto& folder : folders()) {
    const auto model = folder.open(at::kBFloat16, weights::Storage::kWidened);
    // The truth is the float32 model with the bfloat16 inputs and time.
    const auto exact = folder.open(at::kFloat, weights::Storage::kWidened);
    for (const auto& s : folder.samples) {
      if (!s.info.contains("bf16_error")) continue;
      const auto rounded = [](const Tensor& t) { return t.to(at::kBFloat16).to(at::kFloat); };
      Sample same = s;
      same.packed = rounded(s.packed), same.embeds = rounded(s.embeds);
      same.time = static_cast<float>(c10::BFloat16(s.time));
      EXPECT_LE(max_abs_over_rms(velocity(model, s), velocity(exact, same)),
                2 * s.info["bf16_error"]["relative_to_rms"].get<double>())
          << folder.path << " " << s.info["name"];
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

}  // namespace
}  // namespace orrery
