// The Cosmos-Transfer transformer beyond its goldens: odd sizes on many ranks and both guidance branches,
// controls that are left out, hostile input, configurations.
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "orrery/models/cosmos_transfer/model.h"
#include "orrery/models/load.h"
#include "orrery/parallel/team.h"
#include "orrery/platform/cpu.h"
#include "tests/parallel/on_ranks.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;
using cosmos_transfer::Control;
using cosmos_transfer::TransformerConfig;

class RandomWeights final : public nn::Visitor<RandomWeights> {
 public:
  explicit RandomWeights(at::ScalarType dtype) : dtype_(dtype) {}
  void tensor(const std::string& name, Tensor& t, const Shape& shape) {
    if (shape.size() > 1)
      t = at::randn(shape) / std::sqrt(static_cast<double>(shape[1]));
    else
      t = at::randn(shape) * 0.1 + (name.ends_with(".bias") ? 0 : 1);
    t = t.to(dtype_);
  }

 private:
  at::ScalarType dtype_;
};

/// Three heads, three blocks, two of them with a control block behind.
TransformerConfig tiny(std::vector<std::string> branches = {"edge", "vis", "depth", "seg"},
                       bool image_context = false) {
  TransformerConfig c;
  c.base.latent_channels = 4, c.base.heads = 3, c.base.head_dim = 8, c.base.layers = 3, c.base.mlp_ratio = 2;
  c.base.adaln_rank = 4, c.base.text_width = 12, c.base.text_input_width = 10;
  if (image_context) c.base.image_width = 14, c.base.image_input_width = 6;
  c.branches = std::move(branches);
  c.control_blocks = 2, c.every = 2, c.control_channels = 8;
  return c;
}

cosmos_transfer::Transformer random_model(const TransformerConfig& config,
                                          at::ScalarType dtype = at::kFloat) {
  at::manual_seed(11);
  cosmos_transfer::TransformerWeights weights;
  RandomWeights visitor(dtype);
  bind(visitor, weights, config);
  return {config, std::move(weights)};
}

/// A clip of an odd number of tokens, with controls for all branches.
struct Clip {
  explicit Clip(const TransformerConfig& c, int64_t frames = 3, int64_t rows = 3, int64_t columns = 5) {
    at::manual_seed(12);
    const Shape shape = {c.base.latent_channels, frames, 2 * rows, 2 * columns};
    latents = at::randn(shape), embeds = at::randn({7, c.base.text_input_width});
    times = std::vector<float>(static_cast<size_t>(frames), 0.7f), times[0] = 0.1f;
    for (size_t b = 0; b < c.branches.size(); ++b)
      controls.push_back(
          {.branch = b, .hint = at::randn(shape), .weights = {0.3 + 0.2 * static_cast<double>(b)}});
  }
  Tensor random_map() const {
    return at::randn({latents.size(1), latents.size(2) / 2, latents.size(3) / 2}).abs();
  }

  Tensor latents, embeds, features;
  std::vector<float> times;
  int64_t given = 1;
  std::vector<Control> controls;
};

/// With everything that a forward needs.
struct Forward {
  Forward(const cosmos_transfer::Transformer& transformer, const Clip& clip)
      : model(transformer),
        grid(model.grid(clip.latents.size(1), clip.latents.size(2), clip.latents.size(3))),
        prepared(model.prepare(grid, clip.embeds, clip.features, clip.controls)),
        step(model.step(prepared, clip.times)),
        tokens(model.tokens(grid, clip.latents, clip.given, clip.controls)) {}

  Tensor operator()(const parallel::Context& ctx) const {
    parallel::BlockPolicy policy;
    return parallel::run(ctx, model, prepared, step, tokens, policy);
  }
  Tensor on(const config::Factors& factors) const {
    const parallel::Team team({}, factors, 2);
    return team.run([&](const parallel::Context& ctx) { return (*this)(ctx); });
  }

  const cosmos_transfer::Transformer& model;
  cosmos::Grid grid;
  cosmos_transfer::Prepared prepared;
  cosmos_transfer::Step step;
  parallel::Tokens tokens;
};

Tensor velocity(const cosmos_transfer::Transformer& model, const Clip& clip) {
  return Forward(model, clip).on({});
}

/// One control, and three with maps for two of them.
std::vector<Clip> clips(const TransformerConfig& config) {
  Clip one(config), three(config);
  one.controls = {one.controls[0]};
  three.controls.erase(three.controls.begin() + 2);
  three.controls[0].map = three.random_map(), three.controls[1].map = three.random_map();
  three.controls[2].weights = {0.4, 1.3};
  return {one, three};
}

// 45 tokens and three heads: neither divides by 2, 4 or 5; a picture of one token leaves ranks without any.
TEST(CosmosTransfer, RanksGiveTheSameBits) {
  const auto model = random_model(tiny());
  auto all = clips(model.config());
  all.emplace_back(model.config(), 1, 1, 1);
  for (const Clip& clip : all) {
    const Forward run(model, clip);
    const auto one = run.on({});
    for (const int64_t ranks : {2, 3, 4, 5})
      EXPECT_TRUE(at::equal(run.on({.cfg = 1, .ulysses = ranks, .ring = 1}), one))
          << clip.controls.size() << " controls on " << ranks << " ranks";
    for (const auto& [ulysses, ring] : {std::pair{1, 2}, {1, 3}, {2, 2}, {1, 5}})
      EXPECT_LE(relative(run.on({.cfg = 1, .ulysses = ulysses, .ring = ring}), one), 1e-5)
          << clip.controls.size() << " controls on u" << ulysses << ",r" << ring;
  }
}

// Both halves of a cfg mesh: one with a style picture, one without, so that they attend differently.
TEST(CosmosTransfer, GuidanceBranchesSideBySide) {
  const auto model = random_model(tiny({"edge"}, /*image_context=*/true));
  Clip positive(model.config()), negative(model.config());
  positive.features = at::randn({5, 6});
  negative.embeds = at::randn({7, 10});
  const Forward runs[] = {{model, positive}, {model, negative}};
  const Tensor alone[] = {runs[0].on({}), runs[1].on({})};
  EXPECT_GT(relative(alone[0], alone[1]), 1e-2);
  for (const int ulysses : {1, 2, 3}) {
    const auto results =
        on_ranks<Tensor>({.cfg = 2, .ring = 1, .ulysses = ulysses}, {},
                         [&](const parallel::Context& ctx) { return runs[ctx.mesh.cfg().rank()](ctx); });
    ASSERT_EQ(std::ssize(results), 2 * ulysses);
    for (int r = 0; r < 2 * ulysses; ++r)
      EXPECT_TRUE(at::equal(results[static_cast<size_t>(r)], alone[r / ulysses])) << ulysses << " " << r;
  }
}

// A control that cannot act is as if it had not been given, in its results and in what is computed.
TEST(CosmosTransfer, LeftOutControlsCostNothing) {
  const auto model = random_model(tiny());
  Clip clip(model.config());
  clip.controls = {clip.controls[0], clip.controls[2]};
  const Clip one = [&] {
    Clip c = clip;
    c.controls.resize(1);
    return c;
  }();
  const auto expected = velocity(model, one);
  EXPECT_GT(relative(velocity(model, clip), expected), 1e-3);
  using Change = void (*)(Control&);
  const Change changes[] = {[](Control& c) { c.weights = {0}; },
                            [](Control& c) {
                              c.weights = {0, 0};
                            },
                            [](Control& c) { c.hint = at::zeros_like(c.hint); },
                            [](Control& c) {
                              c.map = at::zeros({3, 3, 5});
                            }};
  for (const auto change : changes) {
    Clip changed = clip;
    change(changed.controls[1]);
    const Forward run(model, changed), without(model, one);
    EXPECT_EQ(run.prepared.branches.size(), 1U);
    EXPECT_EQ(run.step.branches.size(), 1U);
    EXPECT_EQ(run.tokens.values.sizes(), without.tokens.values.sizes());
    EXPECT_TRUE(at::equal(run.on({}), expected));
  }
  // One weight or one place that is not 0 is enough to act.
  clip.controls[1].weights = {0, 0.5};
  EXPECT_EQ(Forward(model, clip).prepared.branches.size(), 2U);
}

TEST(CosmosTransfer, ControlsActInTheOrderOfTheirBranches) {
  const auto model = random_model(tiny());
  Clip clip(model.config());
  const auto expected = velocity(model, clip);
  std::ranges::reverse(clip.controls);
  EXPECT_TRUE(at::equal(velocity(model, clip), expected));
}

// A constant map is a weight, and both are factors of the hint.
TEST(CosmosTransfer, MapsMultiplyTheHints) {
  const auto model = random_model(tiny());
  Clip weighted(model.config()), mapped(model.config());
  for (auto& c : weighted.controls) c.weights = {0.375};
  for (auto& c : mapped.controls) c.weights = {1}, c.map = at::zeros({3, 3, 5}) + 0.375;
  const auto expected = velocity(model, weighted);
  EXPECT_TRUE(at::equal(velocity(model, mapped), expected));
  for (auto& c : mapped.controls) c.weights = {0.75}, c.map = at::zeros({3, 3, 5}) + 0.5;
  EXPECT_TRUE(at::equal(velocity(model, mapped), expected));
}

// Many equal image tokens, which is what zeros become, give what one gives; nearly zero features, nearly so.
TEST(CosmosTransfer, ZeroImageFeaturesAreFolded) {
  const auto model = random_model(tiny({"edge"}, /*image_context=*/true));
  Clip clip(model.config());
  const auto folded = velocity(model, clip);
  clip.features = at::zeros({9, 6});
  EXPECT_TRUE(at::equal(velocity(model, clip), folded));
  clip.features = at::zeros({9, 6}) + 1e-12;
  EXPECT_TRUE(Forward(model, clip).prepared.base.cross[0].image_k.defined());
  EXPECT_LE(relative(velocity(model, clip), folded), 1e-5);
  clip.features = at::randn({9, 6});
  EXPECT_GT(relative(velocity(model, clip), folded), 1e-2);
}

TEST(CosmosTransfer, RefusesControlsThatDoNotFit) {
  const auto model = random_model(tiny({"edge", "vis"}));
  const auto refused = [&](const std::string& part, const std::function<void(Clip&)>& change) {
    Clip clip(model.config());
    change(clip);
    const auto grid = model.grid(3, 6, 10);
    expect_error(ErrorKind::kRequest, part,
                 [&] { model.prepare(grid, clip.embeds, clip.features, clip.controls); });
    if (!clip.features.defined())
      expect_error(ErrorKind::kRequest, part, [&] { model.tokens(grid, clip.latents, 0, clip.controls); });
  };
  refused("no control branch 2; this model has edge, vis", [](Clip& c) { c.controls[1].branch = 2; });
  refused("vis is given twice", [](Clip& c) { c.controls[0].branch = 1; });
  refused("edge has 3 weights; expected 1, or 2", [](Clip& c) { c.controls[0].weights = {1, 1, 1}; });
  refused("edge has 0 weights", [](Clip& c) { c.controls[0].weights = {}; });
  refused("not finite", [](Clip& c) { c.controls[0].weights = {std::numeric_limits<double>::quiet_NaN()}; });
  refused("vis has latents of [4, 3, 6, 8]; the clip's are [4, 3, 6, 10]", [](Clip& c) {
    c.controls[1].hint = at::zeros({4, 3, 6, 8});
  });
  refused("edge has latents of []", [](Clip& c) { c.controls[0].hint = Tensor(); });
  refused("edge has a weight map of [3, 6, 10]; the clip's tokens are [3, 3, 5]", [](Clip& c) {
    c.controls[0].map = at::zeros({3, 6, 10});
  });
  refused("no image context", [](Clip& c) { c.features = at::randn({9, 6}); });
  const auto styled = random_model(tiny({"edge"}, /*image_context=*/true));
  for (const Shape& shape : {Shape{9, 7}, Shape{0, 6}, Shape{6}})
    expect_error(ErrorKind::kRequest, "takes [tokens, 6]", [&] {
      styled.prepare(styled.grid(3, 6, 10), at::randn({7, 10}), at::zeros(shape), {});
    });
}

// Everything between the tokens and the velocity in bfloat16: a few of its roundings (2⁻⁹) away.
TEST(CosmosTransfer, Bfloat16) {
  if (platform::preferred_dtype(platform::detect_cpu()) != at::kBFloat16)
    GTEST_SKIP() << "this CPU computes bfloat16 in software";
  const auto config = tiny();
  const auto exact = random_model(config), rounded = random_model(config, at::kBFloat16);
  for (const Clip& clip : clips(config)) {
    const double error = relative(velocity(rounded, clip), velocity(exact, clip));
    EXPECT_GT(error, 1e-4);
    EXPECT_LE(error, 2e-2);
  }
}

// Spec cosmos-transfer2.5 §2.9.
TEST(CosmosTransfer, HasThePublishedNumbersOfParameters) {
  const auto billions = [](const TransformerConfig& config) {
    return static_cast<double>(size_of<cosmos_transfer::TransformerWeights>(config).parameters()) / 1e9;
  };
  TransformerConfig c;
  EXPECT_NEAR(billions(c), 2.358, 5e-4);  // distilled
  c.branches = {"edge", "vis", "depth", "seg"};
  EXPECT_NEAR(billions(c), 3.255, 5e-4);
  c.branches = {"edge"}, c.base.image_width = 2048, c.base.image_input_width = 1152;
  EXPECT_NEAR(billions(c), 2.763, 5e-4);
}

class CosmosTransferConfig : public ::testing::Test {
 protected:
  TransformerConfig read(const nlohmann::json& transformer, const std::vector<nlohmann::json>& controlnets) {
    std::ofstream(folder_ / "config.json") << transformer.dump();
    std::vector<std::string> paths, names;
    for (const auto& json : controlnets) {
      names.push_back("control" + std::to_string(names.size()));
      paths.push_back(folder_ / (names.back() + ".json"));
      std::ofstream(paths.back()) << json.dump();
    }
    return cosmos_transfer::read_transformer_config(folder_ / "config.json", paths, names);
  }
  TempDir folder_;
};

TEST_F(CosmosTransferConfig, IsThePublishedModelUnlessSaidOtherwise) {
  const nlohmann::json transformer = {{"use_crossattn_projection", true}, {"img_context_dim_in", 1152}};
  const auto one = read(transformer, {nlohmann::json::object()});
  EXPECT_EQ(one.every, 7);
  EXPECT_EQ(one.control_blocks, 4);
  EXPECT_EQ(one.control_inputs(), 520);
  EXPECT_EQ(one.base.image_width, 2048);
  const auto two = read(transformer, {nlohmann::json::object(), nlohmann::json::object()});
  EXPECT_EQ(two.base.image_width, 0);
  EXPECT_EQ(two.branches.size(), 2U);
  EXPECT_EQ(read({{"img_context_dim_in", nullptr}}, {{{"in_channels", 18}}}).control_channels, 16);
}

TEST_F(CosmosTransferConfig, NamesWhatIsWrong) {
  const auto refused = [&](const std::string& part, const nlohmann::json& transformer,
                           const std::vector<nlohmann::json>& controlnets) {
    expect_error(ErrorKind::kCheckpoint, part, [&] { read(transformer, controlnets); });
  };
  refused("control0.json: the number of control blocks is 0", nlohmann::json::object(),
          {{{"n_controlnet_blocks", 0}}});
  refused("do not fit into 28 blocks", nlohmann::json::object(), {{{"n_controlnet_blocks", 5}}});
  refused("in_channels without masks is 15", nlohmann::json::object(), {{{"in_channels", 17}}});
  refused("controlnet_block_every_n is -1", {{"controlnet_block_every_n", -1}}, {nlohmann::json::object()});
  refused("img_context_dim_in is -4", {{"img_context_dim_in", -4}}, {nlohmann::json::object()});
  refused("control1.json: 2 control blocks", nlohmann::json::object(),
          {nlohmann::json::object(), {{"n_controlnet_blocks", 2}}});
}

}  // namespace
}  // namespace orrery
