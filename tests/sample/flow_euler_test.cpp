#include "orrery/sample/flow_euler.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "orrery/sample/noise.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"
#include "tests/support/threads.h"

namespace orrery::sample {
namespace {

using testing::expect_error;
using ::testing::FloatNear;
using ::testing::Pointwise;

/// The published configuration (spec qwen-image §6.1).
FlowShift published() {
  FlowShift s;
  s.dynamic = true;
  s.max_shift = 0.9;
  s.max_tokens = 8192;
  s.terminal = 0.02;
  return s;
}

FlowShift read(const std::string& json) {
  const testing::TempDir folder;
  std::ofstream(folder / "scheduler_config.json") << json;
  return read_flow_shift(folder / "scheduler_config.json");
}

// The printed digits of spec qwen-image §6.4, §12.1 and §11.1.
TEST(FlowSigmas, AreTheTablesOfTheSpecification) {
  const auto near = [](const std::vector<float>& sigmas) { return Pointwise(FloatNear(6e-8f), sigmas); };
  EXPECT_THAT(flow_sigmas(published(), 4, 6889), near({1, 0.7809801f, 0.4755488f, 0.02f, 0}));
  EXPECT_THAT(flow_sigmas(published(), 8, 6889),
              near({1, 0.9239344f, 0.8353358f, 0.7308288f, 0.6057056f, 0.4531986f, 0.2632135f, 0.02f, 0}));
  EXPECT_THAT(flow_sigmas(published(), 4, 4096), near({1, 0.7667093f, 0.4556137f, 0.02f, 0}));
  const auto many = flow_sigmas(published(), 50, 6032);
  ASSERT_EQ(many.size(), 51u);
  EXPECT_THAT(std::vector<float>(many.begin(), many.begin() + 3), near({1, 0.9906120f, 0.9810142f}));
  EXPECT_THAT(std::vector<float>(many.end() - 4, many.end()), near({0.1022820f, 0.0620876f, 0.02f, 0}));
  EXPECT_THAT(flow_sigmas(FlowShift::lightning(), 4, 6889), near({1, 0.9f, 0.75f, 0.5f, 0}));
  EXPECT_THAT(flow_sigmas(FlowShift::lightning(), 8, 16),
              near({1, 0.9545455f, 0.9f, 0.8333334f, 0.75f, 0.6428571f, 0.5f, 0.3f, 0}));
  EXPECT_THAT(flow_sigmas({}, 2, 16), near({1, 0.5f, 0}));
}

TEST(FlowSigmas, OfOneStepGoFromNoiseToTheEnd) {
  EXPECT_EQ(flow_sigmas(published(), 1, 6889), (std::vector<float>{1, 0}));
  EXPECT_EQ(flow_sigmas(FlowShift::lightning(), 1, 6889), (std::vector<float>{1, 0}));
  expect_error(ErrorKind::kRequest, "at least 1 step, got 0", [] { flow_sigmas(published(), 0, 6889); });
}

TEST(FlowShift, HasMuOnALineBeyondBothEnds) {
  const std::pair<int64_t, double> rows[] = {{6889, 0.8343245968}, {6032, 0.7911290323}, {4096, 0.6935483871},
                                             {256, 0.5},           {16, 0.4879032258},   {8192, 0.9},
                                             {16384, 1.3129032258}};
  for (const auto& [tokens, mu] : rows) EXPECT_NEAR(published().mu(tokens), mu, 6e-11) << tokens;
}

TEST(FlowShift, IsReadFromTheSchedulersFile) {
  const auto s = read(R"({"use_dynamic_shifting": true, "base_shift": 0.5, "max_shift": 0.9,
    "base_image_seq_len": 256, "max_image_seq_len": 8192, "shift_terminal": 0.02, "shift": 1.0,
    "time_shift_type": "exponential", "invert_sigmas": false, "num_train_timesteps": 1000})");
  EXPECT_EQ(flow_sigmas(s, 20, 6348), flow_sigmas(published(), 20, 6348));
  const auto linear = read(R"({"use_dynamic_shifting": true, "time_shift_type": "linear",
    "base_shift": 2, "max_shift": 2, "shift_terminal": null})");
  EXPECT_THAT(flow_sigmas(linear, 2, 300), Pointwise(FloatNear(6e-8f), {1.0f, 2.0f / 3, 0.0f}));
  EXPECT_EQ(flow_sigmas(read("{}"), 3, 300), flow_sigmas({}, 3, 300));
}

TEST(FlowShift, OfOtherKindsIsRefused) {
  for (const char* name : {"invert_sigmas", "stochastic_sampling", "use_karras_sigmas",
                           "use_exponential_sigmas", "use_beta_sigmas"})
    expect_error(ErrorKind::kUnsupported, std::string(name) + " = true",
                 [&] { read("{\"" + std::string(name) + "\": true}"); });
  expect_error(ErrorKind::kUnsupported, "time_shift_type is cubic",
               [] { read(R"({"time_shift_type": "cubic"})"); });
  expect_error(ErrorKind::kUnsupported, "num_train_timesteps",
               [] { read(R"({"num_train_timesteps": 500})"); });
  expect_error(ErrorKind::kCheckpoint, "shift_terminal", [] { read(R"({"shift_terminal": 1})"); });
  expect_error(ErrorKind::kCheckpoint, "positive shift", [] { read(R"({"shift": 0})"); });
  expect_error(ErrorKind::kCheckpoint, "below max_image_seq_len",
               [] { read(R"({"base_image_seq_len": 4096})"); });
  expect_error(ErrorKind::kCheckpoint, "base_shift", [] { read(R"({"base_shift": "much"})"); });
}

// Spec qwen-image §2.8: what diffusers' pipeline makes of the 50-step table at 1328².
TEST(FlowTime, IsRoundedToTheComputeDtypeTwice) {
  const auto sigmas = flow_sigmas(published(), 50, 6889);
  const std::pair<size_t, float> rows[] = {{0, 1.0f},        {1, 0.9921875f}, {2, 0.98046875f},
                                           {10, 0.8984375f}, {25, 0.6875f},   {49, 0.02001953125f}};
  for (const auto& [i, time] : rows) EXPECT_EQ(flow_time(sigmas[i], at::kBFloat16), time) << i;
  for (const float sigma : sigmas) EXPECT_NEAR(flow_time(sigma, at::kFloat), sigma, 1.2e-7 * sigma);
}

TEST(FlowEuler, FollowsAStraightPathExactlyOnAnyThreads) {
  const Tensor noise = torch_noise({257, 64}, torch_generator(1)),
               data = torch_noise({257, 64}, torch_generator(2));
  const auto run = [&](int count) {
    const testing::Threads threads(count);
    FlowEuler solver(flow_sigmas(published(), 7, 257), noise);
    while (!solver.done()) solver.step(noise - data);
    EXPECT_EQ(solver.index(), 7);
    return solver.sample();
  };
  const Tensor one = run(1);
  EXPECT_LE((one - data).abs().max().item<double>(), 5e-6);
  for (const int threads : {2, 3, 4}) EXPECT_TRUE(at::equal(run(threads), one));
}

TEST(FlowEuler, TakesFallingLevelsAndFittingVelocities) {
  const Tensor x = torch_noise({3}, torch_generator(0));
  expect_error(ErrorKind::kInternal, "end with 0", [&] { FlowEuler({1, 0.5f}, x); });
  expect_error(ErrorKind::kInternal, "falling", [&] { FlowEuler({1, NAN, 0}, x); });
  expect_error(ErrorKind::kInternal, "falling", [&] { FlowEuler({0.5f, 0.5f, 0}, x); });
  FlowEuler solver({1, 0}, x);
  expect_error(ErrorKind::kInternal, "velocity [3]", [&] { solver.step(x.narrow(0, 0, 2)); });
  solver.step(x);
  expect_error(ErrorKind::kInternal, "all 1 steps", [&] { solver.step(x); });
}

}  // namespace
}  // namespace orrery::sample
