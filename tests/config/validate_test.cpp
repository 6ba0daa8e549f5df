// What the command line cannot express; everything else is in tests/cases.
#include "orrery/config/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "orrery/base/error.h"

namespace orrery::config {
namespace {

Request valid() {
  Request request;
  request.prompt = "x";
  return request;
}

std::string refusal(const Request& request, const Limits& limits = {}, const Plan& plan = {}) {
  try {
    validate(request, limits, plan);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Validate, NumbersThatAreNone) {
  for (double value : {double(NAN), double(INFINITY), -double(INFINITY)}) {
    Request request = valid();
    request.guidance = value;
    EXPECT_THAT(refusal(request), testing::StartsWith("guidance: expected a number from 0 to 100, found "));
    request = valid();
    request.conditional_frame_timestep = value;
    EXPECT_THAT(refusal(request),
                testing::StartsWith("conditional_frame_timestep: expected a number from -1 to 1000, found "));
  }
}

TEST(Validate, TextThatIsNotUtf8) {
  Request request = valid();
  request.prompt = "caf\xE9";
  EXPECT_EQ(refusal(request), "prompt: expected UTF-8 text, found other bytes in \"caf\uFFFD\"");
  request = valid();
  request.negative_prompt = "\xFF";
  EXPECT_THAT(refusal(request), testing::StartsWith("negative_prompt: expected UTF-8 text"));
}

TEST(Validate, NamesWithZeroBytes) {
  Request request = valid();
  for (const std::string& name :
       {std::string("a\0b", 3), std::string(), std::string(".."), std::string(201, 'x')}) {
    request.name = name;
    EXPECT_THAT(refusal(request), testing::StartsWith("name: expected a file name"));
  }
  request.name = std::string(200, 'x');
  EXPECT_EQ(refusal(request), "");
}

TEST(Validate, FollowsTheLimitsOfTheModel) {
  Limits limits;
  limits.spatial_multiple = 8, limits.max_width = 100, limits.max_frames = 8, limits.max_sequence_length = 64;
  Request request = valid();
  request.width = 104;
  EXPECT_EQ(refusal(request, limits),
            "width: expected a multiple of 8 from 8 to 100, found 104 (nearest: 96)");
  request = valid();
  request.num_frames = 9;
  EXPECT_EQ(refusal(request, limits), "num_frames: expected 4k+1 (1, 5, 9 …) up to 8, found 9 (nearest: 5)");
  request = valid();
  request.max_sequence_length = 65;
  EXPECT_EQ(refusal(request, limits), "max_sequence_length: expected an integer from 1 to 64, found 65");
}

TEST(Validate, EveryFrameCountNamesAValidNeighbour) {
  for (int64_t frames = -3; frames < 520; ++frames) {
    Request request = valid();
    request.num_frames = frames;
    const std::string message = refusal(request);
    EXPECT_EQ(message.empty(), frames >= 1 && frames <= 509 && frames % 4 == 1) << frames;
    if (message.empty()) continue;
    request.num_frames = std::stoll(message.substr(message.find("nearest: ") + 9));
    EXPECT_EQ(refusal(request), "") << frames;
    EXPECT_LE(std::abs(*request.num_frames - frames), frames >= 1 && frames <= 509 ? 2 : 11) << frames;
  }
}

TEST(Validate, EveryWidthNamesAValidNeighbour) {
  for (int64_t width = -5; width < 1950; ++width) {
    Request request = valid();
    request.width = width;
    const std::string message = refusal(request);
    EXPECT_EQ(message.empty(), width >= 16 && width <= 1920 && width % 16 == 0) << width;
    if (message.empty()) continue;
    request.width = std::stoll(message.substr(message.find("nearest: ") + 9));
    EXPECT_EQ(refusal(request), "") << width;
  }
}

TEST(Validate, ChecksThePlan) {
  Plan plan;
  plan.device = Device::kNpu;
  EXPECT_EQ(refusal(valid(), {}, plan), "device npu is not in this version; use --device cpu");
}

TEST(Complete, LeavesWhatIsSet) {
  Limits limits;
  limits.defaults.guidance = 7, limits.defaults.num_inference_steps = 36,
  limits.defaults.negative_prompt = "bad";
  Request request = valid();
  request.steps = 4, request.guidance = 1, request.negative_prompt_embeds = "n.safetensors";
  const Request completed = complete(request, limits);
  EXPECT_EQ(completed.guidance, 1);
  EXPECT_EQ(completed.steps, 4);
  EXPECT_EQ(completed.num_inference_steps, std::nullopt);
  EXPECT_EQ(completed.negative_prompt, std::nullopt);
  EXPECT_EQ(complete(completed, limits), completed);
}

}  // namespace
}  // namespace orrery::config
