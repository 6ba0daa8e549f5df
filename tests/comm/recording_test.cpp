#include "orrery/comm/recording.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "orrery/base/error.h"
#include "orrery/comm/collectives.h"
#include "orrery/comm/faulty.h"
#include "orrery/comm/run_ranks.h"

namespace orrery::comm {
namespace {

using ::testing::ElementsAre;

TEST(Recorder, CountsExchangesAndBytesPerRankAxisAndPeer) {
  Recorder recorder;
  run_ranks(make_thread_meshes({.cfg = 2, .ulysses = 2}, recorder.decorate()), 1, [](const Mesh& mesh) {
    const Tensor part = at::zeros({mesh.rank() + 1, 3}, at::kHalf);
    const auto sizes = mesh.cfg().rank() == 0 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{3, 4};
    all_gather(mesh.ulysses(), part, 0, sizes);
    shift(mesh.ulysses(), {}, {}).wait();
    agree(mesh.control(), 5);
  });
  EXPECT_EQ(recorder.at(3, "ulysses").exchanges, 2);
  EXPECT_THAT(recorder.at(3, "ulysses").bytes, ElementsAre(24, 24)) << "4 × 3 × 2 bytes to each";
  EXPECT_EQ(recorder.at(3, "ulysses").bytes_out(1), 24);
  EXPECT_THAT(recorder.at(0, "control").bytes, ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(recorder.at(2, "control").bytes, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(recorder.at(2, "control").exchanges, 1);
  EXPECT_EQ(recorder.at(1, "cfg").exchanges, 0);
  EXPECT_THAT(recorder.at(1, "ring").bytes, ElementsAre(0)) << "a group of one is recorded too";
  EXPECT_THROW(recorder.at(4, "cfg"), Error);
  EXPECT_THROW(recorder.at(0, "row"), Error);
}

TEST(Recorder, MeasuresWaitsAndKeepsOtherDecorators) {
  using namespace std::chrono_literals;
  Recorder recorder;
  const Decorate slow_second_rank = [](int rank, std::string_view axis, std::unique_ptr<Group> group) {
    if (rank != 1 || axis != "world") return group;
    return std::unique_ptr<Group>(
        std::make_unique<Faulty>(std::move(group), 1, [] { std::this_thread::sleep_for(50ms); }));
  };
  run_ranks(make_thread_meshes({.ulysses = 2}, recorder.decorate(slow_second_rank)), 1, [](const Mesh& mesh) {
    all_gather(mesh.world(), at::zeros({1}), 0, std::vector<int64_t>{1, 1});
    all_gather(mesh.ulysses(), at::zeros({1}), 0, std::vector<int64_t>{1, 1});
  });
  EXPECT_EQ(recorder.at(1, "world").exchanges, 1);
  EXPECT_GE(recorder.at(0, "world").waited, 0.03);
  EXPECT_GE(recorder.waited(0), recorder.at(0, "world").waited + recorder.at(0, "ulysses").waited);
  EXPECT_LT(recorder.at(1, "world").waited, recorder.at(0, "world").waited);
}

}  // namespace
}  // namespace orrery::comm
