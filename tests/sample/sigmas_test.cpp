// The numbers printed in spec cosmos-predict2.5 §5.1 to §5.4.
#include "orrery/sample/sigmas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"

namespace orrery::sample {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(Sigmas, KarrasOf36Evaluations) {
  const std::vector<float> printed = {
      0.99502486, 0.99420673, 0.99323201, 0.9920665,  0.99066758, 0.98898202, 0.98694307, 0.98446661,
      0.98144668, 0.97774881, 0.97320259, 0.96759123, 0.96063942, 0.95199758, 0.94122404, 0.92776442,
      0.91093159, 0.88989007, 0.86365426, 0.83111519, 0.79111844, 0.74261987, 0.68494213, 0.61812478,
      0.54330009, 0.46294296, 0.38079414, 0.30132923, 0.22886677, 0.1666508,  0.11629516, 0.07776967,
      0.04981578, 0.03052405, 0.01784122, 0.00990099, 0};
  const Schedule schedule = karras_flow(36);
  EXPECT_THAT(schedule.sigmas, Pointwise(FloatNear(6e-8f), printed));
  EXPECT_THAT(schedule.timesteps, ElementsAre(995, 994, 993, 992, 990, 988, 986, 984, 981, 977, 973, 967, 960,
                                              951, 941, 927, 910, 889, 863, 831, 791, 742, 684, 618, 543, 462,
                                              380, 301, 228, 166, 116, 77, 49, 30, 17, 9));
}

TEST(Sigmas, ShiftedLinearOf35Evaluations) {
  const Schedule schedule = shifted_linear(35);
  ASSERT_EQ(schedule.sigmas.size(), 36u);
  EXPECT_NEAR(schedule.sigmas[0], 0.99979985, 6e-8);
  EXPECT_NEAR(schedule.sigmas[1], 0.9939484, 6e-8);
  EXPECT_NEAR(schedule.sigmas[2], 0.98781669, 6e-8);
  EXPECT_NEAR(schedule.sigmas[33], 0.23236881, 6e-8);
  EXPECT_NEAR(schedule.sigmas[34], 0.12809007, 6e-8);
  EXPECT_EQ(schedule.sigmas[35], 0);
  EXPECT_THAT(schedule.timesteps, ElementsAre(999, 993, 987, 981, 974, 967, 960, 952, 943, 935, 925, 915, 905,
                                              894, 882, 869, 855, 840, 824, 807, 789, 768, 746, 722, 695, 666,
                                              633, 596, 555, 508, 454, 391, 318, 232, 128));
}

TEST(Sigmas, FlowShiftLowersAFirstLevelOfOne) {
  EXPECT_EQ(flow_shift(4, 5).sigmas[0], 0.999999f);
  EXPECT_EQ(flow_shift(4, 5).timesteps[0], 999);
}

TEST(Sigmas, OneEvaluationStartsAtTheTop) {
  EXPECT_THAT(karras_flow(1).sigmas, ElementsAre(static_cast<float>(200.0 / 201.0), 0.f));
  EXPECT_EQ(shifted_linear(1).evaluations(), 1);
  EXPECT_EQ(flow_shift(1, 3).evaluations(), 1);
}

TEST(Sigmas, RefusesNoEvaluation) {
  EXPECT_THROW(karras_flow(0), Error);
  EXPECT_THROW(shifted_linear(-1), Error);
  EXPECT_THROW(flow_shift(0, 5), Error);
}

TEST(Sigmas, OfADistilledModelAreThoseOfItsTraining) {
  EXPECT_THAT(distilled(4).sigmas, ElementsAre(1, 15 / 16.f, 5 / 6.f, 5 / 8.f, 0));
  EXPECT_THAT(distilled(1).sigmas, ElementsAre(1, 0));
  EXPECT_THAT(distilled(3).sigmas, ElementsAre(1, 15 / 16.f, 5 / 6.f, 0));
  // 1, 4/5, … 1/5, shifted by 5.
  EXPECT_THAT(distilled(5).sigmas, ElementsAre(1, 20 / 21.f, 15 / 17.f, 10 / 13.f, 5 / 9.f, 0));
  EXPECT_THROW(distilled(0), Error);
}

TEST(NetworkTime, IsTruncatedForTheOfficialCodeOnly) {
  const Schedule schedule = karras_flow(36);
  EXPECT_EQ(network_time(schedule, 0, NetworkTime::kTruncated), 995 * 0.001f);
  EXPECT_EQ(network_time(schedule, 0, NetworkTime::kSigma), schedule.sigmas[0]);
  EXPECT_EQ(network_time(schedule, 35, NetworkTime::kTruncated), 9 * 0.001f);
  EXPECT_THROW(network_time(schedule, 36, NetworkTime::kSigma), Error);
}

}  // namespace
}  // namespace orrery::sample
