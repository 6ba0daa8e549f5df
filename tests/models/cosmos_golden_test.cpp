// The Cosmos transformer against CosmosTransformer3DModel of diffusers (tests/golden/cosmos_dit): every case
// of every folder.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "orrery/models/cosmos/model.h"
#include "orrery/models/cosmos/reference.h"
#include "orrery/models/load.h"
#include "orrery/parallel/team.h"
#include "orrery/platform/cpu.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "tests/support/every_weight.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;

cosmos::Transformer open(const fs::path& folder, const cosmos::Reference& reference, at::ScalarType dtype,
                         weights::Storage storage) {
  const auto config =
      with_arithmetic(cosmos::read_transformer_config(folder / "transformer/config.json"), reference);
  return {config, load<cosmos::TransformerWeights>(weights::open_weights(folder / "transformer"), config,
                                                   dtype, storage, folder)};
}

struct Inputs {
  Tensor latents, embeds;
  std::vector<float> times;
  int64_t given = 0;
};

Inputs inputs(const std::map<std::string, Tensor>& tensors, const Json& c, at::ScalarType dtype) {
  const std::string name = c["name"];
  Inputs in;
  in.latents = tensors.at(name + "/hidden_states")[0].to(dtype).to(at::kFloat);
  in.embeds = tensors.at(name + "/encoder_hidden_states")[0];
  in.given = c["conditioned_frames"];
  const auto time = tensors.at(name + "/timestep").flatten().to(at::kFloat);
  for (int64_t f = 0; f < in.latents.size(1); ++f)
    in.times.push_back(time[time.size(0) == 1 ? 0 : f].item<float>());
  return in;
}

Tensor velocity(const cosmos::Transformer& model, const Inputs& in, const config::Factors& factors = {}) {
  const c10::InferenceMode guard;
  const auto grid = model.grid(in.latents.size(1), in.latents.size(2), in.latents.size(3));
  const auto prepared = model.prepare(grid, in.embeds);
  const auto step = model.step(in.times);
  const auto tokens = model.tokens(grid, in.latents, in.given);
  const parallel::Team team({}, factors, 2);
  const auto out = team.run([&](const parallel::Context& ctx) {
    parallel::BlockPolicy policy;
    return parallel::run(ctx, model, prepared, step, tokens, policy);
  });
  return model.velocity(grid, out);
}

void check_folder(const fs::path& folder, const cosmos::Reference& reference, const std::string& expected,
                  weights::Storage storage) {
  const auto model = open(folder, reference, at::kFloat, storage);
  const auto tensors = read_tensors(folder / "golden.safetensors");
  const Json description = read_json(folder / "case.json");
  const double tolerance = description["tolerance"]["float32"]["max_abs_over_rms"];
  int checked = 0;
  for (const auto& c : description["cases"]) {
    const auto wanted = tensors.find(std::string(c["name"]) + "/" + expected);
    if (wanted == tensors.end()) continue;
    EXPECT_LE(max_abs_over_rms(velocity(model, inputs(tensors, c, at::kFloat)), wanted->second[0]), tolerance)
        << folder << " " << c["name"];
    ++checked;
  }
  EXPECT_GT(checked, 0) << folder;
}

TEST(CosmosGolden, DiffusersArithmetic) {
  const auto folders = golden_folders("cosmos_dit");
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders)
    check_folder(folder, cosmos::kDiffusers, "velocity", weights::Storage::kWidened);
}

TEST(CosmosGolden, OfficialArithmetic) {
  for (const auto& folder : golden_folders("cosmos_dit"))
    check_folder(folder, cosmos::kOfficial, "velocity_official_switches", weights::Storage::kWidened);
}

TEST(CosmosGolden, MappedWeights) {
  for (const auto& folder : golden_folders("cosmos_dit"))
    check_folder(folder, cosmos::kDiffusers, "velocity", weights::Storage::kMapped);
}

// One rank against several: tokens and heads that do not divide, more ranks than heads, ranks without tokens.
TEST(CosmosGolden, RanksGiveTheSameBits) {
  int compared = 0;
  for (const auto& folder : golden_folders("cosmos_dit")) {
    const auto model = open(folder, cosmos::kDiffusers, at::kFloat, weights::Storage::kMapped);
    const auto tensors = read_tensors(folder / "golden.safetensors");
    const Json description = read_json(folder / "case.json");
    for (const auto& c : description["cases"]) {
      const auto in = inputs(tensors, c, at::kFloat);
      const auto one = velocity(model, in);
      for (const int64_t ranks : {2, 3, 4, 5, 8}) {
        EXPECT_TRUE(at::equal(velocity(model, in, {.cfg = 1, .ulysses = ranks, .ring = 1}), one))
            << folder << " " << c["name"] << " on " << ranks << " ranks";
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 50);
}

// A ring adds partial results in another order; through two blocks that stays far below this.
TEST(CosmosGolden, RingsGiveTheSameVelocity) {
  constexpr double kPerForward = 1e-5;
  int compared = 0;
  for (const auto& folder : golden_folders("cosmos_dit")) {
    const auto model = open(folder, cosmos::kDiffusers, at::kFloat, weights::Storage::kMapped);
    const auto tensors = read_tensors(folder / "golden.safetensors");
    const Json description = read_json(folder / "case.json");
    for (const auto& c : description["cases"]) {
      const auto in = inputs(tensors, c, at::kFloat);
      const auto one = velocity(model, in);
      for (const auto& [ulysses, ring] : {std::pair{1, 2}, {1, 3}, {1, 5}, {1, 8}, {2, 2}, {3, 2}, {2, 4}}) {
        const auto ringed = velocity(model, in, {.cfg = 1, .ulysses = ulysses, .ring = ring});
        EXPECT_LE(((ringed - one).norm() / one.norm()).item<double>(), kPerForward)
            << folder << " " << c["name"] << " on u" << ulysses << ",r" << ring;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 70);
}

TEST(CosmosGolden, EveryWeightMatters) {
  const fs::path folder = golden_folders("cosmos_dit").at(0);
  const auto config = with_arithmetic(cosmos::read_transformer_config(folder / "transformer/config.json"),
                                      cosmos::kDiffusers);
  const auto tensors = read_tensors(folder / "golden.safetensors");
  const Json description = read_json(folder / "case.json");
  const double tolerance = description["tolerance"]["float32"]["max_abs_over_rms"];
  const Json& c = description["cases"].back();
  const auto in = inputs(tensors, c, at::kFloat);
  const auto expected = tensors.at(std::string(c["name"]) + "/velocity")[0];
  const auto check = [&](const std::string& name, const weights::TensorMap& changed) {
    const cosmos::Transformer model(
        config,
        load<cosmos::TransformerWeights>(changed, config, at::kFloat, weights::Storage::kWidened, folder));
    EXPECT_GT(max_abs_over_rms(velocity(model, in), expected), 10 * tolerance) << name;
  };
  for_each_disturbed(weights::open_weights(folder / "transformer"), check);
}

// Every container in which official weights come gives the same velocity (tests/golden/checkpoints).
TEST(CosmosGolden, OfficialFiles) {
  const auto folder = golden_root() / "checkpoints";
  const auto tensors = read_tensors(folder / "golden.safetensors");
  const Json description = read_json(folder / "case.json");
  int checked = 0;
  for (const auto& [file, note] : description["files"].items()) {
    const std::string said = note;
    if (said.starts_with("REJECT") || said.starts_with("OPTIONAL") || said.starts_with("an unknown weight"))
      continue;
    auto weights = weights::cosmos_names(weights::open_weights(folder / "official" / file));
    const auto config = with_arithmetic(cosmos::infer_transformer_config(weights), cosmos::kDiffusers);
    const cosmos::Transformer model(config,
                                    load<cosmos::TransformerWeights>(std::move(weights), config, at::kFloat,
                                                                     weights::Storage::kMapped, file));
    // float16 holds the weights to 1e-3 only (case.json).
    const double tolerance = said.find("float16") != std::string::npos
                                 ? 2e-2
                                 : description["tolerance"]["float32"]["max_abs_over_rms"].get<double>();
    for (const auto& c : description["cases"])
      EXPECT_LE(max_abs_over_rms(velocity(model, inputs(tensors, c, at::kFloat)),
                                 tensors.at(std::string(c["name"]) + "/velocity")[0]),
                tolerance)
          << file;
    ++checked;
  }
  EXPECT_GE(checked, 7);
}

TEST(CosmosGolden, Bfloat16) {
  if (platform::preferred_dtype(platform::detect_cpu()) != at::kBFloat16)
    GTEST_SKIP() << "this CPU computes bfloat16 in software";
  for (const auto& folder : golden_folders("cosmos_dit")) {
    const auto tensors = read_tensors(folder / "golden.safetensors");
    const Json description = read_json(folder / "case.json");
    const auto model = open(folder, cosmos::kDiffusers, at::kBFloat16, weights::Storage::kWidened);
    for (const auto& c : description["cases"]) {
      const auto truth = tensors.find(std::string(c["name"]) + "/velocity_bf16_weights_fp32_compute");
      if (truth == tensors.end()) continue;
      const double error =
          max_abs_over_rms(velocity(model, inputs(tensors, c, at::kBFloat16)), truth->second[0]);
      EXPECT_LE(error, 2 * c["bf16_error"]["relative_to_rms"].get<double>()) << folder << " " << c["name"];
    }
  }
}

}  // namespace
}  // namespace orrery
