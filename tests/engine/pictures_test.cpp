// Models that make pictures, as an embedder uses them, on the small random checkpoints of the goldens.
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/config/json.h"
#include "orrery/engine/engine.h"
#include "orrery/engine/inspect.h"
#include "orrery/engine/plans.h"
#include "orrery/engine/write.h"
#include "orrery/media/read.h"
#include "orrery/media/write.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;

config::Settings settings_of(const std::string& name) {
  config::Settings settings;
  settings.model = golden_root() / "pipelines" / name;
  return settings;
}

config::Plan plan_of(const std::string& parallel = "") {
  config::Plan plan;
  plan.dtype = config::Dtype::kFloat32;
  if (!parallel.empty()) plan.parallel = parallel;
  return plan;
}

class Pictures : public ::testing::Test {
 protected:
  config::Request request(const std::string& name = "cat.png") const {
    config::Request r;
    r.prompt = "a cat", r.negative_prompt = "bad quality, blurry";
    r.width = 80, r.height = 48, r.num_inference_steps = 2, r.seed = 7;
    r.output = temp_ / name;
    return r;
  }

  /// A picture of one colour ramp, written to a file.
  std::string picture(const std::string& name, int64_t height, int64_t width) const {
    media::Frames frames{1, height, width, {}};
    for (int64_t i = 0; i < frames.frame_bytes(); ++i) frames.rgb.push_back(static_cast<uint8_t>(i * 7 / 5));
    media::write_image(temp_ / name, frames);
    return temp_ / name;
  }

  Tensor latents(config::Request r, const std::string& parallel, const config::Settings& settings) const {
    r.save_latents = temp_ / "latents.safetensors";
    Engine::open(settings, plan_of(parallel))->run(r);
    return weights::open_safetensors(*r.save_latents).at("latents").clone();
  }

  TempDir temp_;
};

TEST_F(Pictures, OnePerSeedEachOfWhichCanBeMadeAlone) {
  const auto settings = settings_of("qwen_image");
  const auto engine = Engine::open(settings, plan_of());
  EXPECT_TRUE(engine->makes_pictures());
  auto r = request();
  r.num_images = 3;
  const Output output = engine->run(r);
  ASSERT_EQ(output.files,
            (std::vector<std::string>{temp_ / "cat-1.png", temp_ / "cat-2.png", temp_ / "cat-3.png"}));
  EXPECT_EQ(output.evaluations, 6);
  EXPECT_NE(read_file(output.files[0]), read_file(output.files[1]));

  const Json record = Json::parse(media::read_text(output.files[1]).at(kRecordKey));
  EXPECT_EQ(record["settings"]["model"], *settings.model);
  EXPECT_EQ(record["request"]["mode"], "text2image");
  auto again = config::from_json<config::Request>(record["request"]);
  EXPECT_EQ(again.seed, 8);
  again.output = temp_ / "again.png";
  engine->run(again);
  EXPECT_EQ(read_file(temp_ / "again.png"), read_file(output.files[1]));
}

TEST_F(Pictures, InEveryFormatAndInFolders) {
  const auto engine = Engine::open(settings_of("qwen_image"), plan_of());
  for (const char* name : {"a.jpg", "a.webp", "folder/"}) {
    auto r = request(name);
    r.num_images = 2;
    const Output output = engine->run(r);
    ASSERT_EQ(output.files.size(), 2u);
    for (const auto& file : output.files) EXPECT_EQ(media::read_frames(file).width, 80) << file;
  }
  EXPECT_TRUE(fs::exists(temp_ / "folder/000001.png"));
}

TEST_F(Pictures, AnyPlanGivesTheSameLatents) {
  auto text = request();
  text.num_images = 2;
  auto edit = request();
  edit.images = {picture("one.png", 60, 90), picture("two.png", 33, 20)};
  edit.width.reset(), edit.height.reset();
  for (const auto& [name, r] : {std::pair{"qwen_image", text}, {"qwen_image_edit_plus", edit}}) {
    const auto settings = settings_of(name);
    auto small = r;
    // The published area of given pictures is 1024²: one step of the small network takes a second there.
    if (!r.images.empty()) small.num_inference_steps = 1, small.width = 80, small.height = 48;
    const auto one = latents(small, "", settings);
    for (const char* plan : {"u2", "u5", "cfg2", "cfg2,u3"})
      EXPECT_TRUE(at::equal(latents(small, plan, settings), one)) << name << " " << plan;
    for (const char* plan : {"r3", "cfg2,u2,r2"})
      EXPECT_LE(max_abs_over_rms(latents(small, plan, settings), one), 1e-4) << name << " " << plan;
  }
}

TEST_F(Pictures, AnEditTakesTheShapeOfTheLastPicture) {
  const auto settings = settings_of("qwen_image_edit_plus");
  const auto engine = Engine::open(settings, plan_of());
  auto r = request();
  r.images = {picture("wide.png", 20, 60)};
  r.num_inference_steps = 1, r.guidance = 1, r.width.reset(), r.height = 64;
  engine->run(r);
  const auto frames = media::read_frames(*r.output);
  EXPECT_EQ(frames.height, 64) << "what is said counts";
  EXPECT_EQ(frames.width, 1760) << "the width of a 3:1 picture of a megapixel, to 32 pixels: 1773.6";
}

TEST_F(Pictures, LoraChangesThePictureAndIsChecked) {
  auto settings = settings_of("qwen_image");
  const auto r = request();
  const auto plain = latents(r, "", settings);
  const auto base =
      weights::open_safetensors(*settings.model + "/transformer/diffusion_pytorch_model.safetensors");
  const std::string module = "transformer_blocks.0.attn.to_q";
  const auto& w = base.at(module + ".weight");
  const std::string path = temp_ / "style.safetensors";
  weights::write_safetensors(path, {{"transformer." + module + ".lora_A.weight", at::randn({2, w.size(1)})},
                                    {"transformer." + module + ".lora_B.weight", at::randn({w.size(0), 2})}});
  settings.lora = {path + ":0"};
  EXPECT_TRUE(at::equal(latents(r, "", settings), plain)) << "a strength of 0";
  settings.lora = {path};
  const auto styled = latents(r, "", settings);
  EXPECT_GT(max_abs(styled, plain), 1e-3);
  EXPECT_TRUE(at::equal(latents(r, "cfg2,u2", settings), styled));
  auto mapped = plan_of();
  mapped.weights = config::WeightStorage::kMapped;
  auto again = r;
  again.save_latents = temp_ / "mapped.safetensors";
  const auto engine = Engine::open(settings, mapped);
  for (int run = 0; run < 2; ++run) {
    engine->run(again);
    EXPECT_TRUE(at::equal(weights::open_safetensors(*again.save_latents).at("latents"), styled)) << run;
  }
  settings.lora = {temp_ / "none.safetensors"};
  expect_error(ErrorKind::kCheckpoint, "none.safetensors", [&] { Engine::open(settings, plan_of()); });
  weights::write_safetensors(
      path, {{"base_model.model.net.blocks.0.self_attn.q_proj.lora_A.weight", at::randn({2, 8})},
             {"base_model.model.net.blocks.0.self_attn.q_proj.lora_B.weight", at::randn({8, 2})}});
  settings.lora = {path};
  expect_error(ErrorKind::kCheckpoint, "look like", [&] { Engine::open(settings, plan_of()); });
}

TEST_F(Pictures, LightningSamplesInFourOrEightSteps) {
  const auto engine = Engine::open(settings_of("qwen_image"), plan_of());
  auto r = request();
  r.num_inference_steps.reset(), r.lightning = 4;
  const Output output = engine->run(r);
  EXPECT_EQ(output.evaluations, 4);
  EXPECT_EQ(Json::parse(output.json)["request"]["guidance"], 1.0);
}

TEST_F(Pictures, SizesByShape) {
  const auto limits_size = [&](const char* ratio) {
    auto r = request();
    r.width.reset(), r.height.reset(), r.aspect_ratio = ratio, r.num_inference_steps = 1, r.guidance = 1;
    Engine::open(settings_of("qwen_image"), plan_of())->run(r);
    const auto frames = media::read_frames(*r.output);
    return std::pair(frames.width, frames.height);
  };
  EXPECT_EQ(limits_size("16:9"), (std::pair<int64_t, int64_t>{1664, 928}));
}

TEST_F(Pictures, BadInputIsRefusedBeforeAnyWork) {
  const auto text = Engine::open(settings_of("qwen_image"), plan_of()),
             edit = Engine::open(settings_of("qwen_image_edit_plus"), plan_of());
  bool started = false;
  const auto refuse = [&](Engine& engine, const char* expected,
                          const std::function<void(config::Request&)>& change) {
    auto r = request();
    change(r);
    expect_error(ErrorKind::kRequest, expected, [&] {
      engine.run(r, {.progress = [&](const Progress&) { started = true; }, .cancelled = {}});
    });
  };
  const std::string image = picture("one.png", 16, 16);
  refuse(*text, "nearest: 96", [](auto& r) { r.width = 100; });
  refuse(*text, "takes no image, found 1", [&](auto& r) { r.images = {image}; });
  refuse(*text, "expected text2image, which this model makes, found image2world",
         [](auto& r) { r.mode = config::Mode::kImage2World; });
  refuse(*text, "makes pictures, found a video", [&](auto& r) { r.video = image; });
  refuse(*text, "makes pictures, expected 1, found 17", [](auto& r) { r.num_frames = 17; });
  refuse(*text, "expected one of 1:1, 16:9",
         [](auto& r) { r.width.reset(), r.height.reset(), r.aspect_ratio = "21:9"; });
  refuse(*text, "expected 4 or 8 steps, found 6", [](auto& r) { r.lightning = 6; });
  refuse(*text, "no official one", [](auto& r) { r.reference = config::Reference::kOfficial; });
  refuse(*text, "num_images: expected an integer from 1", [](auto& r) { r.num_images = 0; });
  refuse(*text, "is a video", [&](auto& r) { r.output = temp_ / "cat.mp4"; });
  refuse(*text, "expected packed latents of", [&](auto& r) {
    r.init_latents = temp_ / "small.safetensors";
    weights::write_safetensors(*r.init_latents, {{"latents", at::randn({1, 16, 64})}});
  });
  refuse(*edit, "expected 1 to 3 images (--image), found 0", [](auto&) {});
  refuse(*edit, "found 4", [&](auto& r) { r.images = {image, image, image, image}; });
  refuse(*edit, "No such file", [](auto& r) { r.images = {"/none.png"}; });
  refuse(*edit, "too narrow", [&](auto& r) { r.images = {picture("thin.png", 1, 9000)}; });
  EXPECT_FALSE(fs::exists(temp_ / "cat.png"));
}

TEST_F(Pictures, VerifyInspectAndPlan) {
  const auto engine = Engine::open(settings_of("qwen_image"), plan_of("cfg2,u2"));
  for (const auto& a : engine->verify(request())) EXPECT_TRUE(a.identical) << a.stage;
  const Json seen = Json::parse(inspect(settings_of("qwen_image_edit_plus"), true));
  EXPECT_EQ(seen["family"], "Qwen-Image-Edit-Plus");
  EXPECT_TRUE(seen.contains("vision_tower"));
  EXPECT_EQ(seen["defaults"]["num_inference_steps"], 40);
  EXPECT_NE(inspect(settings_of("qwen_image_edit_plus"), false).find("vision tower"), std::string::npos);
  auto eight = plan_of();
  eight.ranks = 8;
  const Json plan = Json::parse(plans(settings_of("qwen_image"), eight, request(), true));
  EXPECT_EQ(plan["tokens"], 15);
  EXPECT_EQ(plan["chosen"], "cfg2,u4,r1");
}

}  // namespace
}  // namespace orrery
