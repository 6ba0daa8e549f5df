// The engine as an embedder uses it, on the checkpoint that comes with orrery and on one in the official
// layout.
#include "orrery/engine/engine.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/engine/inspect.h"
#include "orrery/engine/write.h"
#include "orrery/media/read.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;

const fs::path kSource = ORRERY_SOURCE_DIR;

config::Settings tiny_world() {
  config::Settings settings;
  settings.model = kSource / "models/tiny-world";
  return settings;
}

config::Plan plan_of(const std::string& parallel = "") {
  config::Plan plan;
  plan.dtype = config::Dtype::kFloat32;
  if (!parallel.empty()) plan.parallel = parallel;
  return plan;
}

class EngineTest : public ::testing::Test {
 protected:
  config::Request request(const std::string& name = "clip.mp4") const {
    config::Request r;
    r.prompt = "a red circle moving right on a white background";
    r.num_inference_steps = 2;
    r.output = temp_ / name;
    return r;
  }

  /// Final latents of a request on a plan.
  Tensor latents(config::Request r, const std::string& parallel,
                 const config::Settings& settings = tiny_world()) const {
    r.save_latents = temp_ / "latents.safetensors";
    Engine::open(settings, plan_of(parallel))->run(r);
    return weights::open_safetensors(*r.save_latents).at("latents").clone();
  }

  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temp_.path()), fs::directory_iterator()));
  }

  TempDir temp_;
};

TEST_F(EngineTest, MakesAVideoAndSaysHow) {
  const auto engine = Engine::open(tiny_world(), plan_of());
  std::vector<std::string> stages;
  int64_t last = 0;
  const Output output = engine->run(request(), {.progress =
                                                    [&](const Progress& p) {
                                                      if (stages.empty() || stages.back() != p.stage)
                                                        stages.push_back(p.stage);
                                                      if (p.stage == "denoise") last = p.step;
                                                    },
                                                .cancelled = {}});
  EXPECT_EQ(stages, (std::vector<std::string>{"text", "denoise", "decode", "write"}));
  EXPECT_EQ(last, 2);
  EXPECT_EQ(output.evaluations, 2);
  ASSERT_EQ(output.files, (std::vector<std::string>{temp_ / "clip.mp4"}));
  const auto frames = media::read_frames(output.files[0]);
  EXPECT_EQ(frames.count, 17);
  EXPECT_EQ(frames.height, 64);
  EXPECT_EQ(frames.width, 96);
  const Json json = Json::parse(output.json);
  EXPECT_EQ(json["request"]["guidance"], 3.0);
  EXPECT_EQ(json["plan"]["parallel"], "cfg1,u1,r1");
  EXPECT_EQ(json["plan"]["dtype"], "float32");
  EXPECT_EQ(files(), 1u);
}

TEST_F(EngineTest, EqualRequestsGiveEqualFiles) {
  const auto engine = Engine::open(tiny_world(), plan_of());
  engine->run(request("a.mp4"));
  engine->run(request("b.mp4"));
  EXPECT_EQ(read_file(temp_ / "a.mp4"), read_file(temp_ / "b.mp4"));
}

TEST_F(EngineTest, AFullDiskIsFoundBeforeTheWork) {
  check_writable(temp_ / "new/clip.mp4", 1000);
  expect_error(ErrorKind::kResource, "clip.mp4 takes about 1000000.0 TB",
               [&] { check_writable(temp_ / "new/clip.mp4", 1'000'000'000'000'000'000); });
  EXPECT_TRUE(fs::is_empty(temp_ / "new"));
}

TEST_F(EngineTest, AnyPlanGivesTheSameLatents) {
  auto r = request();
  r.width = 80, r.height = 48, r.num_frames = 13;  // 4 × 3 × 5 = 60 tokens on 4 heads
  r.images = {kSource / "examples/tiny-world/purple_square.png"};
  const auto one = latents(r, "");
  for (const char* plan : {"u2", "u3", "u4", "u5", "u8", "cfg2", "cfg2,u2", "cfg2,u3", "cfg2,u4"})
    EXPECT_TRUE(at::equal(latents(r, plan), one)) << plan;
  // A ring's bits differ, by less than this of the root mean square after all steps.
  constexpr double kRing = 1e-4;
  const double rms = one.square().mean().sqrt().item<double>();
  for (const char* plan : {"r2", "r3", "r5", "r8", "u2,r2", "u2,r3", "cfg2,r2", "cfg2,u2,r2"})
    EXPECT_LE((latents(r, plan) - one).abs().max().item<double>(), kRing * rms) << plan;
}

TEST_F(EngineTest, MappedAndWidenedWeightsGiveTheSameLatents) {
  auto r = request();
  r.save_latents = temp_ / "latents.safetensors";
  std::vector<Tensor> results;
  for (const auto storage : {config::WeightStorage::kMapped, config::WeightStorage::kWidened}) {
    auto plan = plan_of();
    plan.weights = storage;
    Engine::open(tiny_world(), plan)->run(r);
    results.push_back(weights::open_safetensors(*r.save_latents).at("latents").clone());
  }
  EXPECT_TRUE(at::equal(results[0], results[1]));
}

TEST_F(EngineTest, ContinuesImagesAndClips) {
  const auto engine = Engine::open(tiny_world(), plan_of());
  auto r = request("image.mkv");
  r.num_inference_steps = 10;
  r.images = {kSource / "examples/tiny-world/purple_square.png"};
  engine->run(r);
  const auto wanted = media::read_frames(r.images[0]);
  const auto made = media::read_frames(*r.output, media::Selection::first(1));
  double difference = 0;
  for (size_t i = 0; i < wanted.rgb.size(); ++i)
    difference += std::abs(double{1} * wanted.rgb[i] - made.rgb[i]);
  EXPECT_LT(difference / static_cast<double>(wanted.rgb.size()), 12)
      << "the first frame is not the one that was given";

  r = request("clip.mkv");
  r.video = kSource / "examples/tiny-world/blue_triangle.mkv";
  engine->run(r);
  EXPECT_EQ(media::read_frames(*r.output).count, 17);
}

TEST_F(EngineTest, LongVideosAreMadeInChunks) {
  const auto engine = Engine::open(tiny_world(), plan_of());
  for (const int64_t overlap : {1, 5}) {
    auto r = request(concat("long", overlap, ".mkv"));
    r.enable_autoregressive = true;
    r.num_output_frames = 40, r.chunk_size = 17, r.chunk_overlap = overlap;
    const Output output = engine->run(r);
    EXPECT_EQ(media::read_frames(*r.output).count, 40);
    const int64_t chunks = 1 + (40 - 17 + 17 - overlap - 1) / (17 - overlap);
    EXPECT_EQ(output.evaluations, 2 * chunks) << "overlap " << overlap;
  }
}

TEST_F(EngineTest, OneFrameIsAPicture) {
  auto r = request("still.png");
  r.num_frames = 1;
  Engine::open(tiny_world(), plan_of())->run(r);
  EXPECT_EQ(media::read_frames(*r.output).count, 1);
}

TEST_F(EngineTest, EmbeddingsReplaceTheTextEncoder) {
  auto r = request();
  const auto wanted = latents(r, "");
  const auto reference = read_tensors(golden_root() / "tiny_world/text_circle_right.safetensors");
  r.prompt.reset();
  r.prompt_embeds = temp_ / "embeds.safetensors", r.negative_prompt_embeds = temp_ / "negative.safetensors";
  weights::write_safetensors(*r.prompt_embeds, {{"prompt_embeds", reference.at("prompt_embeds")}});
  weights::write_safetensors(*r.negative_prompt_embeds,
                             {{"negative_prompt_embeds", reference.at("negative_prompt_embeds")}});
  EXPECT_LE(max_abs_over_rms(latents(r, ""), wanted), 1e-4);
}

TEST_F(EngineTest, ACancelledRunLeavesNothing) {
  const auto engine = Engine::open(tiny_world(), plan_of("u2"));
  int asked = 0;
  expect_error(ErrorKind::kCancelled, "step 2 of 2",
               [&] { engine->run(request(), {.progress = {}, .cancelled = [&] { return ++asked == 2; }}); });
  EXPECT_EQ(files(), 0u);
  EXPECT_EQ(engine->run(request()).files.size(), 1u) << "the engine works after a cancelled run";
}

TEST_F(EngineTest, NonFiniteLatentsNameStepAndBlock) {
  auto r = request();
  r.init_latents = temp_ / "huge.safetensors";
  weights::write_safetensors(*r.init_latents, {{"latents", at::full({1, 16, 5, 8, 12}, 3e38)}});
  for (const char* plan : {"", "cfg2,u2"})
    expect_error(ErrorKind::kInternal, "no longer finite at step 1 of 2, in block 0 of 6",
                 [&] { Engine::open(tiny_world(), plan_of(plan))->run(r); });
  EXPECT_EQ(files(), 1u);
}

TEST_F(EngineTest, BadInputIsRefusedBeforeAnyWork) {
  const auto engine = Engine::open(tiny_world(), plan_of());
  bool started = false;
  const auto refuse = [&](const char* expected, const std::function<void(config::Request&)>& change) {
    auto r = request();
    change(r);
    expect_error(ErrorKind::kRequest, expected, [&] {
      engine->run(r, {.progress = [&](const Progress&) { started = true; }, .cancelled = {}});
    });
  };
  refuse("nearest: 96", [](auto& r) { r.width = 100; });
  refuse("nearest: 17", [](auto& r) { r.num_frames = 16; });
  refuse("No such file", [](auto& r) { r.images = {"/none/picture.png"}; });
  refuse("folder", [](auto& r) { r.output = "/dev/null/clip.mp4"; });
  refuse("is a picture", [&](auto& r) { r.output = temp_ / "clip.png"; });
  refuse("frames", [&](auto& r) {
    r.video = kSource / "examples/tiny-world/purple_square.png";
    r.mode = config::Mode::kVideo2World;
  });
  refuse("expected latents of", [&](auto& r) {
    r.init_latents = temp_ / "small.safetensors";
    weights::write_safetensors(*r.init_latents, {{"latents", at::randn({1, 16, 5, 8, 8})}});
  });
  EXPECT_FALSE(fs::exists(temp_ / "clip.mp4"));
}

/// The official layout: base/post-trained/NAME.pt and tokenizer.pth, without a text encoder beside it.
class OfficialLayout : public EngineTest {
 protected:
  void SetUp() override {
    fs::create_directories(temp_.path() / "repo/base/post-trained");
    fs::copy_file(golden_root() / "checkpoints/official/flat.pt",
                  temp_.path() / "repo/base/post-trained/model_ema_bf16.pt");
    fs::copy_file(golden_root() / "wan_vae/tokenizer.pth", temp_.path() / "repo/tokenizer.pth");
    settings_.model = temp_ / "repo";
  }
  config::Settings settings_;
};

TEST_F(OfficialLayout, RunsFromEmbeddings) {
  const Json inspected = Json::parse(inspect(settings_, true));
  EXPECT_EQ(inspected["layout"], "official");
  const int64_t features = inspected["transformer"]["text_features"];
  config::Request r;
  r.prompt_embeds = temp_ / "embeds.safetensors", r.negative_prompt_embeds = r.prompt_embeds;
  weights::write_safetensors(*r.prompt_embeds, {{"prompt_embeds", at::randn({1, 7, features})}});
  r.width = 48, r.height = 32, r.num_frames = 5, r.steps = 2;
  r.output = temp_ / "official.mp4";
  const Output output = Engine::open(settings_, plan_of())->run(r);
  EXPECT_EQ(output.evaluations, 3) << "official steps with karras sigmas make one evaluation more";
  EXPECT_EQ(media::read_frames(*r.output).count, 5);
  r.output = temp_ / "again.mp4";
  EXPECT_TRUE(at::equal(latents(r, "u2", settings_), latents(r, "", settings_)));
}

TEST_F(OfficialLayout, NamesWhatIsMissing) {
  config::Request r;
  r.prompt = "a cat", r.output = temp_ / "x.mp4", r.width = 48, r.height = 32, r.num_frames = 5;
  expect_error(ErrorKind::kCheckpoint, "--text-encoder", [&] { Engine::open(settings_, plan_of())->run(r); });
  fs::remove(temp_.path() / "repo/tokenizer.pth");
  expect_error(ErrorKind::kCheckpoint, "--vae", [&] { Engine::open(settings_, plan_of()); });
  settings_.model = temp_ / "nothing";
  expect_error(ErrorKind::kCheckpoint, "no checkpoint at", [&] { Engine::open(settings_, plan_of()); });
}

TEST_F(EngineTest, RefusesAnotherFamilyByName) {
  fs::copy(kSource / "models/tiny-world", temp_.path() / "other", fs::copy_options::recursive);
  write_file(temp_ / "other/model_index.json", R"({"_class_name": "WanPipeline"})");
  config::Settings settings;
  settings.model = temp_ / "other";
  expect_error(ErrorKind::kUnsupported, "names WanPipeline; orrery runs Cosmos-Predict2.5",
               [&] { Engine::open(settings, plan_of()); });
}

TEST_F(EngineTest, RefusesAnIncompleteFolder) {
  for (const char* missing : {"transformer/config.json", "transformer/diffusion_pytorch_model.safetensors",
                              "vae/config.json", "model_index.json"}) {
    const fs::path folder = temp_.path() / "copy";
    fs::copy(kSource / "models/tiny-world", folder, fs::copy_options::recursive);
    fs::remove(folder / missing);
    config::Settings settings;
    settings.model = folder;
    expect_error(ErrorKind::kCheckpoint, folder.string(), [&] { Engine::open(settings, plan_of()); });
    fs::remove_all(folder);
  }
}

TEST(Inspect, TellsTheTinyWorld) {
  const Json json = Json::parse(inspect(tiny_world(), true));
  EXPECT_EQ(json["family"], "Cosmos-Predict2.5");
  EXPECT_EQ(json["transformer"]["parameters"], 2013184);
  EXPECT_EQ(json["vae"]["parameters"], 924491);
  EXPECT_NE(inspect(tiny_world(), false).find("6 blocks of 128 (4 heads x 32)"), std::string::npos);
}

}  // namespace
}  // namespace orrery
