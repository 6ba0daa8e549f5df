// Cosmos-Transfer as an embedder uses it, on the small random checkpoints of the goldens.
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/base/text.h"
#include "orrery/engine/engine.h"
#include "orrery/media/read.h"
#include "orrery/media/write.h"
#include "orrery/sample/noise.h"
#include "orrery/weights/safetensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace orrery {
namespace {

using namespace testing;

config::Plan plan_of(const std::string& parallel = "") {
  config::Plan plan;
  plan.dtype = config::Dtype::kFloat32;
  if (!parallel.empty()) plan.parallel = parallel;
  return plan;
}

/// A square that moves over a ramp.
media::Frames moving_square(int64_t count, int64_t height, int64_t width, int64_t side = 12) {
  media::Frames frames{count, height, width, {}};
  for (int64_t f = 0; f < count; ++f)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const bool inside = x >= 2 * f && x < 2 * f + side && y >= 6 && y < 6 + side;
        for (int c = 0; c < 3; ++c)
          frames.rgb.push_back(static_cast<uint8_t>(inside ? 250 - 60 * c : (x * 2 + y * c) % 128));
      }
  return frames;
}

class Transfer : public ::testing::Test {
 protected:
  Transfer() { media::write_video(input_, moving_square(21, 40, 72), 16); }

  /// One ControlNet: 21 frames in three chunks of 9.
  config::Request request(const std::string& name = "out.mkv") const {
    config::Request r;
    r.prompt = "a square", r.negative_prompt = "blurry", r.max_sequence_length = 16;
    r.video = input_, r.edge = "auto";
    r.width = 48, r.height = 32, r.chunk_size = 9, r.num_inference_steps = 2;
    r.output = temp_ / name;
    return r;
  }

  static config::Settings single() {
    config::Settings settings;
    settings.model = golden_root() / "pipelines/cosmos_transfer";
    return settings;
  }

  /// single(), but for an image context as wide as the golden picture encoder's features.
  config::Settings styled() const {
    const fs::path folder = temp_ / "styled", transformer = folder / "transformer";
    fs::copy(*single().model, folder, fs::copy_options::recursive);
    auto config = read_json(transformer / "config.json");
    config["img_context_dim_in"] = kStyleWidth;
    write_file(transformer / "config.json", config.dump());
    const std::string file = transformer / "diffusion_pytorch_model.safetensors";
    auto tensors = weights::open_safetensors(file);
    auto& projection = tensors.at("img_context_proj.0.weight");
    projection = at::randn({projection.size(0), kStyleWidth}).to(projection.scalar_type());
    weights::write_safetensors(file, tensors);
    config::Settings settings;
    settings.model = folder;
    return settings;
  }
  static constexpr int64_t kStyleWidth = 36;

  /// The four official files, laid out like the published repository.
  config::Settings multi(const std::vector<std::string>& controls = {}) const {
    const std::map<std::string, std::string> folders = {
        {"edge", "edge"}, {"vis", "blur"}, {"depth", "depth"}, {"seg", "seg"}};
    for (const auto& [name, folder] : folders) {
      const fs::path at = fs::path(temp_ / "hub/general") / folder;
      fs::create_directories(at);
      if (!fs::exists(at / "model.pt"))
        fs::create_symlink(golden_root() / "transfer/multi" / (name + "_ema_bf16.pt"), at / "model.pt");
    }
    config::Settings settings;
    settings.model = temp_ / "hub", settings.controls = controls;
    settings.vae = golden_root() / "wan_vae/tokenizer.pth";
    return settings;
  }

  /// The official edge file where the published repository keeps the distilled one.
  config::Settings distilled() const {
    const fs::path folder = fs::path(temp_ / "hub/distilled/general/edge");
    fs::create_directories(folder);
    fs::create_symlink(golden_root() / "transfer/multi/edge_ema_bf16.pt", folder / "model.pt");
    config::Settings settings;
    settings.model = folder / "model.pt", settings.vae = golden_root() / "wan_vae/tokenizer.pth";
    return settings;
  }

  /// For models without a text encoder.
  config::Request with_embeds(config::Request r) const {
    const std::string path = temp_ / "embeds.safetensors";
    if (!fs::exists(path)) weights::write_safetensors(path, {{"prompt_embeds", at::randn({5, 40})}});
    r.prompt.reset(), r.negative_prompt.reset(), r.num_inference_steps.reset();
    r.prompt_embeds = r.negative_prompt_embeds = path;
    r.steps = 2;
    return r;
  }

  Tensor latents(config::Request r, const config::Settings& settings, const std::string& parallel) const {
    r.save_latents = temp_ / "latents.safetensors";
    Engine::open(settings, plan_of(parallel))->run(r);
    return weights::open_safetensors(*r.save_latents).at("latents").clone();
  }

  std::string file(const std::string& name, const media::Frames& frames) const {
    media::write_video(temp_ / name, frames, 16);
    return temp_ / name;
  }

  TempDir temp_;
  const std::string input_ = temp_ / "input.mkv";
};

TEST_F(Transfer, WritesTheVideoItsControlsAndThePrompt) {
  const auto engine = Engine::open(single(), plan_of());
  auto r = request();
  r.show_control_condition = r.show_input = r.keep_input_resolution = true;
  const auto output = engine->run(r);
  EXPECT_EQ(output.files, (std::vector<std::string>{temp_ / "out.mkv", temp_ / "out_control_edge.mkv"}));
  EXPECT_EQ(output.evaluations, 6);
  const auto video = media::read_frames(temp_ / "out.mkv");
  EXPECT_EQ(video.count, 21);
  EXPECT_EQ(video.height, 40);
  EXPECT_EQ(video.width, 3 * 72) << "control, input, output";
  const auto edges = media::read_frames(temp_ / "out_control_edge.mkv");
  EXPECT_EQ(edges.count, 21);
  EXPECT_EQ(edges.width, 72);
  EXPECT_EQ(read_file(temp_ / "out.txt"), "a square");
  EXPECT_FALSE(fs::exists(temp_ / "out.mkv.chunks"));
}

TEST_F(Transfer, ChunksWithEachOverlapOnAnyPlan) {
  for (const int64_t overlap : {0, 1, 2}) {
    auto r = request();
    r.chunk_overlap = overlap;
    Engine::open(single(), plan_of())->run(r);
    const auto one = read_file(*r.output);
    EXPECT_EQ(media::read_frames(*r.output).count, 21);
    for (const char* plan : {"cfg2", "u2", "u3", "cfg2,u2", "cfg2,u4", "u5"}) {
      Engine::open(single(), plan_of(plan))->run(r);
      EXPECT_TRUE(read_file(*r.output) == one) << plan << ", overlap " << overlap;
    }
  }
}

TEST_F(Transfer, SeveralControlsWithMasksOnAnyPlan) {
  auto r = with_embeds(request());
  r.depth = input_, r.vis = "auto", r.chunk_size = 5, r.num_frames = 5;
  r.width = 80, r.height = 48;
  r.edge_weight = {0.5}, r.depth_weight = {0.75};
  r.depth_mask = file("mask.mkv", moving_square(5, 40, 72, 30));
  const auto settings = multi({"edge", "vis", "depth"});
  const auto one = latents(r, settings, "");
  for (const char* plan : {"cfg2", "u3", "u5", "cfg2,u4"})
    EXPECT_TRUE(at::equal(latents(r, settings, plan), one)) << plan;
  for (const char* plan : {"r3", "cfg2,u2,r2"})
    EXPECT_LE(max_abs_over_rms(latents(r, settings, plan), one), 1e-4) << plan;

  auto other = r;
  other.depth_mask.reset();
  EXPECT_FALSE(at::equal(latents(other, settings, ""), one)) << "the mask counts";
  other = r;
  other.vis_weight = {0.25};
  EXPECT_FALSE(at::equal(latents(other, settings, ""), one)) << "the weight counts";
}

TEST_F(Transfer, ADistilledModelTakesFourStepsWithoutGuidanceOnAnyPlan) {
  auto r = with_embeds(request());
  r.steps.reset();
  const auto settings = distilled();
  const auto one = latents(r, settings, "");
  EXPECT_EQ(Engine::open(settings, plan_of())->run(r).evaluations, 3 * 4);
  for (const char* plan : {"cfg2", "u2", "u3", "cfg2,u2"})
    EXPECT_TRUE(at::equal(latents(r, settings, plan), one)) << plan;

  auto other = r;
  other.guidance = 7, other.negative_prompt_embeds.reset();
  EXPECT_TRUE(at::equal(latents(other, settings, ""), one)) << "guidance is built in";
  other = r;
  other.seed = 4;
  EXPECT_FALSE(at::equal(latents(other, settings, ""), one)) << "the seed counts";

  auto named = multi({"edge"});
  named.variant = config::Variant::kDistilled;
  EXPECT_TRUE(at::equal(latents(r, named, ""), one)) << "--variant says what the path says";
  r.steps = 4;
  EXPECT_FALSE(at::equal(latents(r, multi({"edge"}), ""), one));
  r.reference = config::Reference::kDiffusers;
  expect_error(ErrorKind::kRequest, "a distilled model is sampled as the official one only",
               [&] { Engine::open(settings, plan_of())->check(r); });
}

TEST_F(Transfer, ADistilledModelBeginsWithTorchsNoiseOfTheChunksSeed) {
  auto r = with_embeds(request());
  r.num_frames = r.chunk_size = 9, r.steps.reset(), r.seed = 42;
  const auto one = latents(r, distilled(), "");
  // The first chunk's seed for 42 (spec cosmos-transfer2.5 §4.3).
  const auto noise = sample::torch_noise(one.sizes().vec(), sample::torch_generator(670487));
  r.init_latents = temp_ / "noise.safetensors";
  weights::write_safetensors(*r.init_latents, {{"latents", noise}});
  auto settings = multi({"edge"});
  settings.variant = config::Variant::kDistilled;
  EXPECT_TRUE(at::equal(latents(r, settings, ""), one));
}

TEST_F(Transfer, AControlOfWeightZeroIsNoControl) {
  auto r = with_embeds(request());
  r.chunk_size = 5, r.num_frames = 5;
  const auto settings = multi({"edge", "depth"});
  const auto edge = latents(r, settings, "");
  r.depth = input_, r.depth_weight = {0};
  EXPECT_TRUE(at::equal(latents(r, settings, ""), edge));
  r.depth_weight.clear();
  r.depth = file("black.mkv", {5, 40, 72, std::vector<uint8_t>(5 * 40 * 72 * 3)});
  EXPECT_TRUE(at::equal(latents(r, settings, ""), edge)) << "black all over";
}

TEST_F(Transfer, GoesOnWhereItWasStopped) {
  const auto engine = Engine::open(single(), plan_of());
  auto r = request("whole.mkv");
  engine->run(r);
  const auto whole = read_file(*r.output), edges = read_file(temp_ / "whole_control_edge.mkv");

  r.output = temp_ / "stopped.mkv";
  int encoded = 0;
  bool stop = false;
  Callbacks callbacks;
  callbacks.progress = [&](const Progress& p) {
    if (p.stage == "encode") ++encoded;
    stop = encoded == 3 && p.stage == "denoise";
  };
  callbacks.cancelled = [&] { return stop; };
  EXPECT_THROW(engine->run(r, callbacks), Error);
  EXPECT_FALSE(fs::exists(*r.output));
  EXPECT_TRUE(fs::exists(temp_ / "stopped.mkv.chunks/0001.safetensors"));

  auto other = r;
  other.resume = true, other.seed = 9;
  expect_error(ErrorKind::kRequest, "holds chunks of another request", [&] { engine->run(other); });

  r.resume = true;
  const auto output = Engine::open(single(), plan_of("u2"))->run(r);
  EXPECT_EQ(output.evaluations, 2) << "the third chunk only";
  EXPECT_TRUE(read_file(*r.output) == whole);
  EXPECT_TRUE(read_file(temp_ / "stopped_control_edge.mkv") == edges);
  EXPECT_FALSE(fs::exists(temp_ / "stopped.mkv.chunks"));
}

TEST_F(Transfer, GuidedGenerationKeepsWhatTheMaskShows) {
  auto r = request();
  r.num_frames = r.chunk_size = 5;
  const auto free = latents(r, single(), "");
  r.guided_generation_mask = file("mask.mkv", moving_square(5, 40, 72, 24));
  const auto kept = latents(r, single(), "");
  EXPECT_FALSE(at::equal(kept, free));
  EXPECT_TRUE(at::equal(latents(r, single(), "cfg2,u2"), kept));
  EXPECT_TRUE(fs::exists(temp_ / "out_mask_guided_generation.mkv"));
  r.guided_generation_mask = file("black.mkv", {5, 40, 72, std::vector<uint8_t>(5 * 40 * 72 * 3)});
  EXPECT_LE(max_abs_over_rms(latents(r, single(), ""), free), 1e-6) << "nothing to keep";
}

TEST_F(Transfer, AStylePictureCountsWhereTheModelLooksAtIt) {
  auto r = request();
  r.num_frames = r.chunk_size = 5;
  auto settings = styled();
  const auto plain = latents(r, settings, "");
  media::write_image(temp_ / "style.png", moving_square(1, 30, 50));
  r.image_context_path = temp_ / "style.png";
  expect_error(ErrorKind::kCheckpoint, "--image-encoder",
               [&] { Engine::open(settings, plan_of())->check(r); });
  settings.image_encoder = golden_root() / "siglip2/image_encoder";
  const auto styled = latents(r, settings, "");
  EXPECT_GT(max_abs_over_rms(styled, plain), 1e-3);
  EXPECT_TRUE(at::equal(latents(r, settings, "cfg2,u2"), styled));
  r.image_context_path.reset(), r.context_frame_index = 2;
  EXPECT_FALSE(at::equal(latents(r, settings, ""), styled)) << "another picture";

  auto several = with_embeds(request());
  several.num_frames = several.chunk_size = 5, several.depth = input_;
  const auto two = multi({"edge", "depth"});
  const auto without = latents(several, two, "");
  several.context_frame_index = 2;
  EXPECT_TRUE(at::equal(latents(several, two, ""), without)) << "only a warning";
}

TEST_F(Transfer, APictureIsAVideoOfOneFrame) {
  auto r = request("out.jpg");
  r.video.reset();
  media::write_image(temp_ / "input.png", moving_square(1, 40, 72));
  r.images = {temp_ / "input.png"};
  r.chunk_size = 1;
  const auto output = Engine::open(single(), plan_of())->run(r);
  EXPECT_EQ(output.files, (std::vector<std::string>{temp_ / "out.jpg", temp_ / "out_control_edge.jpg"}));
}

TEST_F(Transfer, RefusesFilesThatDoNotFit) {
  const auto engine = Engine::open(single(), plan_of());
  const auto refused = [&](const std::string& message, const std::function<void(config::Request&)>& change) {
    auto r = request();
    change(r);
    expect_error(ErrorKind::kRequest, message, [&] { engine->check(r); });
  };
  refused("cannot read", [&](auto& r) { r.edge = temp_ / "nothing.mp4"; });
  refused("chunk 3 of 3 begins with frame 16",
          [&](auto& r) { r.edge = file("short.mkv", moving_square(16, 40, 72)); });
  refused("the control edge", [&](auto& r) {
    r.width.reset(), r.height.reset(), r.resolution = "256";
    r.edge = file("tall.mkv", moving_square(21, 72, 40));
  });
  refused("the mask of the control edge", [&](auto& r) {
    r.width.reset(), r.height.reset(), r.resolution = "256";
    r.edge_mask = file("tall_mask.mkv", moving_square(21, 72, 40));
  });
  refused("expected the preset of the edge threshold", [](auto& r) { r.edge_preset = "strong"; });
  refused("resolution", [](auto& r) { r.width.reset(), r.height.reset(), r.resolution = "333"; });
  refused("context_frame_index: expected a frame below 21", [](auto& r) { r.context_frame_index = 21; });
  expect_error(ErrorKind::kRequest, "this checkpoint follows one control", [] {
    auto settings = single();
    settings.controls = {"edge", "depth"};
    Engine::open(settings, plan_of());
  });
  expect_error(ErrorKind::kRequest, "seg: this model is controlled by edge, depth only", [&] {
    auto r = with_embeds(request());
    r.seg = input_;
    Engine::open(multi({"edge", "depth"}), plan_of())->check(r);
  });
}

}  // namespace
}  // namespace orrery
