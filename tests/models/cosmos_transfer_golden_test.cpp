// The Cosmos-Transfer transformer against CosmosControlNetModel and CosmosTransformer3DModel of diffusers
// (tests/golden/transfer): one branch with image context, and up to four branches without.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "orrery/models/cosmos/reference.h"
#include "orrery/models/cosmos_transfer/model.h"
#include "orrery/models/load.h"
#include "orrery/parallel/team.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "tests/support/every_weight.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;
using cosmos_transfer::Control;
using cosmos_transfer::TransformerConfig;
using cosmos_transfer::TransformerWeights;
using weights::Storage;
using weights::TensorMap;

const std::vector<std::string> kBranches = {"edge", "vis", "depth", "seg"};

fs::path folder(const char* name) { return golden_root() / "transfer" / name; }

/// A checkpoint on its way to a model: all tensors under the names of bind.
struct Checkpoint {
  TransformerConfig config;
  TensorMap tensors;

  TransformerWeights weights(Storage storage) const {
    return load<TransformerWeights>(tensors, config, at::kFloat, storage, "golden",
                                    cosmos_transfer::official_name);
  }
  cosmos_transfer::Transformer open(Storage storage = Storage::kMapped) const {
    return {config, weights(storage)};
  }
};

TransformerConfig as_diffusers(TransformerConfig config) {
  config.base = with_arithmetic(config.base, cosmos::kDiffusers);
  return config;
}

Checkpoint single_diffusers() {
  const auto path = folder("single");
  const auto config = cosmos_transfer::read_transformer_config(path / "transformer/config.json",
                                                               {path / "controlnet/config.json"}, {"edge"});
  return {as_diffusers(config),
          cosmos_transfer::assemble(
              weights::cosmos_names(weights::open_weights(path / "transformer")),
              {{"edge", weights::cosmos_control_names(weights::open_weights(path / "controlnet"))}})};
}

/// Whole models of official names: a branch of each, the base of the last.
Checkpoint official(const std::vector<std::pair<std::string, fs::path>>& files) {
  TensorMap base;
  std::vector<cosmos_transfer::BranchTensors> parts;
  std::vector<std::string> names;
  for (const auto& [name, path] : files) {
    base = weights::cosmos_names(weights::open_weights(path));
    parts.push_back({name, weights::cosmos_control_names(weights::open_weights(path))});
    names.push_back(name);
  }
  auto tensors = assemble(base, parts);
  const auto config = cosmos_transfer::infer_transformer_config(tensors, names);
  return {as_diffusers(config), std::move(tensors)};
}

Checkpoint single_official() { return official({{"edge", folder("single") / "general_edge_ema_bf16.pt"}}); }

Checkpoint multi(const std::vector<std::string>& branches) {
  std::vector<std::pair<std::string, fs::path>> files;
  for (const auto& name : branches) files.emplace_back(name, folder("multi") / (name + "_ema_bf16.pt"));
  return official(files);
}

struct Inputs {
  Tensor latents, embeds, features;
  std::vector<float> times;
  int64_t given = 0;
  std::vector<Control> controls;
};

std::vector<float> times_of(const Tensor& stored, int64_t frames) {
  const auto time = stored.flatten().to(at::kFloat);
  std::vector<float> times;
  for (int64_t f = 0; f < frames; ++f) times.push_back(time[time.size(0) == 1 ? 0 : f].item<float>());
  return times;
}

template <class Model, class Prepare, class Tokens>
Tensor forward(const Model& model, const Inputs& in, const config::Factors& factors, const Prepare& prepare,
               const Tokens& make_tokens) {
  const c10::InferenceMode guard;
  const auto grid = model.grid(in.latents.size(1), in.latents.size(2), in.latents.size(3));
  const auto [prepared, step] = prepare(grid);
  const auto tokens = make_tokens(grid);
  const parallel::Team team({}, factors, 2);
  const auto out = team.run([&, &prepared = prepared, &step = step](const parallel::Context& ctx) {
    parallel::BlockPolicy policy;
    return parallel::run(ctx, model, prepared, step, tokens, policy);
  });
  return model.velocity(grid, out);
}

Tensor velocity(const cosmos_transfer::Transformer& model, const Inputs& in,
                const config::Factors& factors = {}) {
  return forward(
      model, in, factors,
      [&](const cosmos::Grid& grid) {
        auto prepared = model.prepare(grid, in.embeds, in.features, in.controls);
        auto step = model.step(prepared, in.times);
        return std::pair(std::move(prepared), std::move(step));
      },
      [&](const cosmos::Grid& grid) { return model.tokens(grid, in.latents, in.given, in.controls); });
}

/// The base by itself, as a Cosmos-Predict transformer.
Tensor base_velocity(const cosmos::Transformer& model, const Inputs& in) {
  return forward(
      model, in, {},
      [&](const cosmos::Grid& grid) {
        return std::pair(model.prepare(grid, model.prompt(in.embeds, in.features)), model.step(in.times));
      },
      [&](const cosmos::Grid& grid) { return model.tokens(grid, in.latents, in.given); });
}

/// What each control block of the first control gives at weight 1.
std::vector<Tensor> hints(const cosmos_transfer::Transformer& model, const TransformerWeights& weights,
                          const Inputs& in) {
  const c10::InferenceMode guard;
  const auto grid = model.grid(in.latents.size(1), in.latents.size(2), in.latents.size(3));
  const auto prepared = model.prepare(grid, in.embeds, in.features, in.controls);
  const auto step = model.step(prepared, in.times);
  const auto tokens = model.tokens(grid, in.latents, in.given, in.controls);
  std::vector<Tensor> found;
  const parallel::Team team({}, {}, 2);
  team.run([&](const parallel::Context& ctx) {
    auto stream = model.embed(ctx, prepared, step, tokens);
    for (int64_t i = 0; i < model.block_count(); ++i) {
      model.block(ctx, prepared, step, i, stream);
      if (i % model.config().every != 0) continue;
      const auto& block = weights.branches[in.controls[0].branch].blocks[found.size()];
      found.push_back(nn::linear(block.after_proj, stream.branches[0].state.x));
    }
    return Tensor();
  });
  return found;
}

/// A folder's stored tensors and what its case.json says.
struct Golden {
  explicit Golden(const char* name)
      : tensors(read_tensors(folder(name) / "golden.safetensors")),
        description(read_json(folder(name) / "case.json")) {}

  double tolerance() const { return description["tolerance"]["float32"]["max_abs_over_rms"]; }
  std::vector<std::string> cases() const {
    std::vector<std::string> names;
    for (const Json& c : description["cases"]) names.push_back(c["name"]);
    EXPECT_FALSE(names.empty());
    return names;
  }

  /// Of a case of `single`, with its control at full strength.
  Inputs single(const std::string& name) const {
    const auto get = [&](const char* what) { return tensors.at(name + "/" + what)[0]; };
    Inputs in{get("latents"), get("text"), get("image_features"), {}, 0, {}};
    in.times = times_of(tensors.at(name + "/timestep"), in.latents.size(1));
    for (const Json& c : description["cases"])
      if (c["name"] == name) in.given = c["conditioned_frames"];
    in.controls = {Control{.branch = 0, .hint = get("control_latents")}};
    return in;
  }

  /// Of a case of `multi`, for a model with these branches.
  Inputs multi(const std::string& name, const std::vector<std::string>& branches = kBranches) const {
    const auto get = [&](const std::string& what) { return tensors.at("inputs/" + what)[0]; };
    Inputs in{get("latents"), get("text"), {}, {}, 0, {}};
    in.times = times_of(tensors.at("inputs/timestep"), in.latents.size(1));
    in.given = get("condition_mask")[0].flatten(1).select(1, 0).sum().item<int64_t>();
    Json chosen;
    for (const Json& c : description["cases"])
      if (c["name"] == name) chosen = c["weights"];
    for (size_t b = 0; b < branches.size(); ++b) {
      if (!chosen.contains(branches[b])) continue;
      Control control{.branch = b, .hint = get("control_latents." + branches[b])};
      const auto map = tensors.find(name + "/map." + branches[b]);
      if (map == tensors.end())
        control.weights = {chosen[branches[b]].get<double>()};
      else
        control.map = map->second;
      in.controls.push_back(control);
    }
    EXPECT_FALSE(in.controls.empty()) << name;
    return in;
  }

  std::map<std::string, Tensor> tensors;
  Json description;
};

Inputs with_weights(Inputs in, std::vector<double> weights) {
  for (auto& control : in.controls) control.weights = weights;
  return in;
}

class CosmosTransferGolden : public ::testing::TestWithParam<Storage> {};

// Every weight of case.json, and zero image features given as well as left away.
TEST_P(CosmosTransferGolden, OneBranch) {
  const Golden golden("single");
  const auto model = single_diffusers().open(GetParam());
  const std::pair<const char*, std::vector<double>> strengths[] = {{"velocity", {1}},
                                                                   {"velocity_weight_0.35", {0.35}},
                                                                   {"velocity_per_block_0.5_2", {0.5, 2}},
                                                                   {"velocity_without_control", {0}}};
  double worst = 0;
  for (const auto& name : golden.cases())
    for (const auto& [expected, strength] : strengths) {
      auto in = with_weights(golden.single(name), strength);
      const auto got = velocity(model, in);
      worst = std::max(worst, max_abs_over_rms(got, golden.tensors.at(name + "/" + expected)[0]));
      if (in.features.any().item<bool>()) continue;
      in.features = Tensor();
      EXPECT_TRUE(at::equal(velocity(model, in), got)) << name << " " << expected;
    }
  EXPECT_LE(worst, golden.tolerance());
  std::printf("largest deviation: %.2g of rms\n", worst);
}

TEST_P(CosmosTransferGolden, SeveralBranches) {
  const Golden golden("multi");
  const auto model = multi(kBranches).open(GetParam());
  double worst = 0;
  for (const auto& name : golden.cases()) {
    const double deviation =
        max_abs_over_rms(velocity(model, golden.multi(name)), golden.tensors.at(name + "/velocity")[0]);
    EXPECT_LE(deviation, golden.tolerance()) << name;
    worst = std::max(worst, deviation);
  }
  std::printf("largest deviation: %.2g of rms\n", worst);
}

INSTANTIATE_TEST_SUITE_P(Weights, CosmosTransferGolden,
                         ::testing::Values(Storage::kWidened, Storage::kMapped), [](const auto& test) {
                           return test.param == Storage::kMapped ? "Mapped" : "Widened";
                         });

TEST(CosmosTransferGolden, HintsOfEachControlBlock) {
  int compared = 0;
  const auto check = [&](const Golden& golden, const Checkpoint& checkpoint, const Inputs& in,
                         const std::string& stored) {
    const auto weights = checkpoint.weights(Storage::kMapped);
    const auto got = hints(checkpoint.open(), weights, in);
    ASSERT_EQ(std::ssize(got), checkpoint.config.control_blocks);
    for (size_t k = 0; k < got.size(); ++k, ++compared)
      EXPECT_LE(max_abs_over_rms(got[k], golden.tensors.at(concat(stored, k))[0]), golden.tolerance())
          << stored << k;
  };
  const Golden single("single"), several("multi");
  for (const auto& name : single.cases())
    check(single, single_diffusers(), single.single(name), name + "/hint");
  auto edge = several.multi("edge_depth");
  edge.controls.resize(1);
  check(several, multi(kBranches), edge, "inputs/edge.hint");
  EXPECT_EQ(compared, 10);
}

// An official file is the two diffusers folders in other words.
TEST(CosmosTransferGolden, OfficialFileGivesTheSameBits) {
  const Golden golden("single");
  const auto named = single_diffusers(), whole = single_official();
  EXPECT_EQ(whole.config.every, named.config.every);
  EXPECT_EQ(whole.config.control_channels, 128);
  EXPECT_EQ(whole.config.base.image_width, named.config.base.image_width);
  for (const auto& name : golden.cases())
    EXPECT_TRUE(
        at::equal(velocity(whole.open(), golden.single(name)), velocity(named.open(), golden.single(name))))
        << name;
}

// A model that was opened for some of the branches computes what one with all of them does; so does one
// whose base comes in another layout.
TEST(CosmosTransferGolden, OneToFourBranches) {
  const Golden golden("multi");
  const auto all = multi(kBranches).open();
  const std::pair<std::string, std::vector<std::string>> choices[] = {
      {"one_of_four", {"depth"}}, {"edge_depth", {"edge", "depth"}}, {"uneven", {"edge", "depth", "seg"}}};
  for (const auto& [name, branches] : choices)
    EXPECT_TRUE(at::equal(velocity(multi(branches).open(), golden.multi(name, branches)),
                          velocity(all, golden.multi(name))))
        << name;

  auto checkpoint = multi(kBranches);
  int replaced = 0;
  for (const auto& [name, tensor] : weights::open_weights(folder("multi") / "transformer"))
    if (auto& own = checkpoint.tensors.at(name); ++replaced) own = tensor;
  EXPECT_GT(replaced, 50);
  EXPECT_TRUE(at::equal(velocity(checkpoint.open(), golden.multi("all_raw")),
                        velocity(all, golden.multi("all_raw"))));
}

TEST(CosmosTransferGolden, WithoutControlsItIsTheBase) {
  const Golden golden("single");
  const auto checkpoint = single_diffusers();
  const auto model = checkpoint.open();
  const cosmos::Transformer base(checkpoint.config.base, checkpoint.weights(Storage::kMapped).base);
  for (const auto& name : golden.cases()) {
    auto in = golden.single(name);
    const auto alone = base_velocity(base, in);
    EXPECT_LE(max_abs_over_rms(alone, golden.tensors.at(name + "/velocity_without_control")[0]),
              golden.tolerance());
    EXPECT_TRUE(at::equal(velocity(model, with_weights(in, {0, 0})), alone)) << name;
    in.controls.clear();
    EXPECT_TRUE(at::equal(velocity(model, in), alone)) << name;
  }
}

// One rank against several: tokens and heads that do not divide, more ranks than heads, ranks without tokens.
TEST(CosmosTransferGolden, RanksGiveTheSameBits) {
  int compared = 0;
  const auto check = [&](const cosmos_transfer::Transformer& model, const Inputs& in,
                         const std::string& name) {
    const auto one = velocity(model, in);
    for (const int64_t ranks : {2, 3, 4, 5, 8}) {
      EXPECT_TRUE(at::equal(velocity(model, in, {.cfg = 1, .ulysses = ranks, .ring = 1}), one))
          << name << " on " << ranks << " ranks";
      ++compared;
    }
    for (const auto& [ulysses, ring] : {std::pair{1, 2}, {1, 3}, {1, 5}, {2, 2}, {3, 2}}) {
      const auto ringed = velocity(model, in, {.cfg = 1, .ulysses = ulysses, .ring = ring});
      EXPECT_LE(((ringed - one).norm() / one.norm()).item<double>(), 1e-5)
          << name << " on u" << ulysses << ",r" << ring;
    }
  };
  const Golden single("single"), several("multi");
  const auto one_branch = single_diffusers().open(), four = multi(kBranches).open();
  for (const auto& name : single.cases()) check(one_branch, single.single(name), name);
  for (const auto& name : several.cases()) check(four, several.multi(name), name);
  EXPECT_EQ(compared, 45);
}

TEST(CosmosTransferGolden, EveryWeightMatters) {
  const auto check = [](Checkpoint checkpoint, const Inputs& in, double tolerance) {
    const auto expected = velocity(checkpoint.open(Storage::kWidened), in);
    for_each_disturbed(TensorMap(checkpoint.tensors), [&](const std::string& name, const TensorMap& changed) {
      checkpoint.tensors = changed;
      EXPECT_GT(max_abs_over_rms(velocity(checkpoint.open(Storage::kWidened), in), expected), 10 * tolerance)
          << name;
    });
  };
  const Golden single("single"), several("multi");
  check(single_diffusers(), single.single("t2_h6w4_style"), single.tolerance());
  check(multi(kBranches), several.multi("all_raw"), several.tolerance());
}

// The columns of the control embedding that meet zeros only are dropped, not the others.
TEST(CosmosTransferGolden, ZerosBehindTheHintDoNotMatter) {
  const Golden golden("single");
  auto checkpoint = single_diffusers();
  const auto in = golden.single("t3_h6w10_c1");
  const auto expected = velocity(checkpoint.open(), in);
  auto& embedder = checkpoint.tensors.at("edge.control_embedder.proj.weight");
  const auto original = embedder.clone();
  const auto changed_from = [&](int64_t column, int64_t count) {
    embedder = original.clone();
    embedder.narrow(1, column, count).fill_(3);
    return !at::equal(velocity(checkpoint.open(), in), expected);
  };
  EXPECT_FALSE(changed_from(64, 448));
  EXPECT_TRUE(changed_from(63, 1));
  EXPECT_TRUE(changed_from(512, 4));   // the condition mask
  EXPECT_FALSE(changed_from(516, 4));  // the padding mask, which is zero at inference
}

// Several controls share a base without image context, also where their files have one (spec §2.6).
TEST(CosmosTransferGolden, SeveralBranchesDropTheImageContext) {
  const Golden golden("single");
  const auto file = folder("single") / "general_edge_ema_bf16.pt";
  const auto checkpoint = official({{"edge", file}, {"vis", file}});
  EXPECT_EQ(checkpoint.config.base.image_width, 0);
  const auto model = checkpoint.open();
  auto in = golden.single("t3_h6w10");
  expect_error(ErrorKind::kRequest, "no image context", [&] { velocity(model, in); });
  in.features = Tensor();
  EXPECT_GT(max_abs_over_rms(velocity(model, in), golden.tensors.at("t3_h6w10/velocity")[0]), 1e-3);
  const auto edge = velocity(model, in);
  in.controls[0].branch = 1;
  EXPECT_TRUE(at::equal(velocity(model, in), edge));
}

TEST(CosmosTransferGolden, CheckpointsWithoutABranchAreRefused) {
  auto checkpoint = single_official();
  checkpoint.tensors.erase("edge.control_blocks.1.after_proj.bias");
  expect_error(ErrorKind::kCheckpoint, "net.control_blocks.1.after_proj.bias in the file",
               [&] { checkpoint.open(); });
  checkpoint = single_official();
  checkpoint.tensors["edge.control_blocks.0.novelty.weight"] = at::zeros({1});
  expect_error(ErrorKind::kCheckpoint, "control_blocks.0.novelty", [&] { checkpoint.open(); });
  const auto base = weights::open_weights(folder("multi") / "transformer");
  expect_error(ErrorKind::kCheckpoint, "edge.control_embedder", [&] {
    cosmos_transfer::infer_transformer_config(cosmos_transfer::assemble(base, {{"edge", {}}}), {"edge"});
  });
}

}  // namespace
}  // namespace orrery
