// A request on ranks that are processes, here played by threads that share nothing but the groups: the VAE is
// shared between them, the first has the frames of one process.
#include <ATen/ops/equal.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "orrery/base/error.h"
#include "orrery/comm/run_ranks.h"
#include "orrery/pipeline/given_frames.h"
#include "orrery/pipeline/predict.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class Processes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    config::Settings settings;
    settings.model = (fs::path(ORRERY_SOURCE_DIR) / "models/tiny-world").string();
    model_ = new pipeline::PredictModel(pipeline::open_predict_model(settings, at::kFloat));
    pipeline::load_weights(*model_, config::WeightStorage::kAuto);
    pipeline::load_encoder(*model_);
  }
  static void TearDownTestSuite() { delete model_; }

  static config::Request request() {
    config::Request r;
    r.prompt = "a blue triangle moving right";
    r.video = (fs::path(ORRERY_SOURCE_DIR) / "examples/tiny-world/blue_triangle.mkv").string();
    r.num_inference_steps = 1;
    return r;
  }

  static pipeline::Media run(const parallel::Team& team, config::Request wanted,
                             const config::Plan& plan = {}, const pipeline::Hooks& hooks = {}) {
    const auto ready = config::complete(std::move(wanted), model_->limits);
    config::validate(ready, model_->limits, plan);
    const auto& reference = model_->reference(ready);
    return pipeline::predict(*model_, reference, team, ready, pipeline::read_given_frames(ready, reference),
                             hooks);
  }

  /// Runs fn on so many processes' teams.
  static void on_processes(int count, const config::Plan& plan,
                           const std::function<void(int process, const parallel::Team&)>& fn) {
    const auto meshes = comm::make_thread_meshes({.ulysses = count});
    comm::run_ranks(meshes, 1, [&](const comm::Mesh& mesh) {
      // The mesh outlives the team, which shares what a process of its own would own.
      const parallel::Team team(plan, 1, {std::shared_ptr<void>(), &mesh});
      fn(mesh.rank(), team);
    });
  }

  static void compare(const config::Request& wanted, const config::Plan& plan = {}) {
    const auto expected = run(parallel::Team(plan, {}, 1), wanted, plan);
    on_processes(3, plan, [&](int process, const parallel::Team& team) {
      const auto video = run(team, wanted, plan);
      EXPECT_TRUE(at::equal(video.latents, expected.latents)) << process;
      EXPECT_EQ(video.frames.rgb, process == 0 ? expected.frames.rgb : std::vector<uint8_t>()) << process;
    });
  }

  static inline pipeline::PredictModel* model_ = nullptr;
  const c10::InferenceMode guard_;
};

TEST_F(Processes, GiveTheFramesOfOne) { compare(request()); }

TEST_F(Processes, GoOnFromTheSameFramesInALongVideo) {
  config::Request r = request();
  r.enable_autoregressive = true, r.num_frames = 9, r.chunk_size = 9, r.chunk_overlap = 5;
  r.num_output_frames = 17;
  compare(r);
}

TEST_F(Processes, ShareEachTile) {
  config::Request r = request();
  r.video = std::nullopt, r.height = 64, r.width = 272, r.num_frames = 5;
  config::Plan plan;
  plan.vae_tiling = true;
  compare(r, plan);
}

TEST_F(Processes, EndTogetherWhenOneIsAskedToWhileDecoding) {
  on_processes(2, {}, [&](int process, const parallel::Team& team) {
    bool decoding = false;
    pipeline::Hooks hooks;
    hooks.progress = [&](const std::string& stage, int64_t, int64_t) { decoding |= stage == "decode"; };
    if (process == 1) hooks.cancelled = [&] { return decoding; };
    try {
      run(team, request(), {}, hooks);
      ADD_FAILURE() << "process " << process << " was not ended";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kCancelled) << e.what();
    }
  });
}

}  // namespace
}  // namespace orrery
