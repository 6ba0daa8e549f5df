#include "orrery/config/request.h"

#include <gtest/gtest.h>

#include "orrery/base/error.h"

namespace orrery::config {
namespace {

TEST(Overlay, ReplacesFieldsThatAnswerTheSameQuestionTogether) {
  Request base, over;
  base.images = {"a.png"}, base.steps = 35, base.prompt = "x", base.negative_prompt = "y", base.seed = 3;
  over.video = "b.mp4", over.num_inference_steps = 4, over.prompt_embeds = "p",
  over.negative_prompt_embeds = "n";
  Request expected = over;
  expected.seed = 3;
  EXPECT_EQ(overlay(base, over), expected);
}

TEST(Overlay, KeepsTheBaseWhereNothingIsSaid) {
  Request base;
  base.images = {"a.png"}, base.width = 96, base.enable_autoregressive = true;
  EXPECT_EQ(overlay(base, {}), base);
  Request over;
  over.enable_autoregressive = false, over.height = 64;
  const Request both = overlay(base, over);
  EXPECT_EQ(both.enable_autoregressive, false);
  EXPECT_EQ(both.width, 96);
  EXPECT_EQ(both.height, 64);
}

TEST(Evaluations, OfficialKarrasTakesOneMore) {
  Request request;
  EXPECT_THROW(evaluations(request, true), Error);
  request.steps = 35, request.reference = Reference::kOfficial;
  EXPECT_EQ(evaluations(request, /*karras=*/true), 36);
  EXPECT_EQ(evaluations(request, /*karras=*/false), 35);
  request.reference = Reference::kDiffusers;
  EXPECT_EQ(evaluations(request, true), 35);
  request.reference = Reference::kOfficial, request.num_inference_steps = 20;
  EXPECT_EQ(evaluations(request, true), 20);
}

TEST(Mode, FollowsWhatIsGiven) {
  Request request;
  EXPECT_EQ(mode_of(request), Mode::kText2World);
  request.images = {"a.png"};
  EXPECT_EQ(mode_of(request), Mode::kImage2World);
  request.video = "a.mp4";
  EXPECT_EQ(mode_of(request), Mode::kVideo2World);
  request.mode = Mode::kImage2World;
  EXPECT_EQ(mode_of(request), Mode::kImage2World);
}

}  // namespace
}  // namespace orrery::config
