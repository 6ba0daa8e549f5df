#include "orrery/app/place.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/expect_error.h"

namespace orrery::app {
namespace {

using testing::expect_error;
using Variables = std::map<std::string, std::string>;

std::optional<comm::Place> place(const Variables& variables, int64_t job = 7) {
  return read_place(
      [&](const std::string& name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      job);
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "n0"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}
Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(Place, NobodyStartedUs) {
  EXPECT_FALSE(place({}));
  EXPECT_FALSE(place({{"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(place({{"SLURM_NTASKS", "8"}})) << "a shell inside an allocation";
}

TEST(Place, Torchrun) {
  const auto p = place(kTorchrun).value();
  EXPECT_EQ(p.rank, 5);
  EXPECT_EQ(p.size, 8);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.local_size, 4);
  EXPECT_EQ(p.address, "n0");
  EXPECT_EQ(p.port, 29500);
  EXPECT_TRUE(p.store_elsewhere);
  EXPECT_FALSE(place(without(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE"))->store_elsewhere);
  EXPECT_EQ(place(with(kTorchrun, "SLURM_PROCID", "0"))->rank, 5) << "srun torchrun: the inner one counts";
}

TEST(Place, OpenMpi) {
  const Variables mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "prterun-42"}};
  const auto p = place(mpi).value();
  EXPECT_EQ(p.rank, 1);
  EXPECT_EQ(p.local_size, 2);
  EXPECT_EQ(p.address, "127.0.0.1");
  EXPECT_FALSE(p.store_elsewhere);
  EXPECT_EQ(p.port, place(mpi, 8)->port) << "the job's name counts, not the number";
  EXPECT_NE(p.port, place(with(mpi, "PMIX_NAMESPACE", "prterun-43"))->port);
  EXPECT_EQ(place(with(mpi, "MASTER_PORT", "1234"))->port, 1234);
  expect_error(ErrorKind::kRequest, "MASTER_ADDR is not set",
               [&] { place(with(with(mpi, "OMPI_COMM_WORLD_SIZE", "4"), "OMPI_COMM_WORLD_RANK", "3")); });
}

TEST(Place, Slurm) {
  const Variables by_hand = {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "1"}};
  auto p = place(by_hand).value();
  EXPECT_EQ(p.rank, 1);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.address, "127.0.0.1");
  EXPECT_EQ(p.port, place(with(by_hand, "SLURM_PROCID", "0"))->port);
  EXPECT_NE(p.port, place(by_hand, 8)->port);

  p = place({{"SLURM_PROCID", "3"},
             {"SLURM_NTASKS", "4"},
             {"SLURM_LOCALID", "1"},
             {"SLURM_JOB_ID", "99"},
             {"SLURM_STEP_ID", "0"},
             {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
             {"SLURM_STEP_NODELIST", "gpu[07-08]"}})
          .value();
  EXPECT_EQ(p.local_size, 2);
  EXPECT_EQ(p.address, "gpu07");
}

TEST(Place, RefusesWhatContradictsItselfAndNamesTheVariable) {
  const auto refuse = [](const std::string& part, const Variables& variables) {
    expect_error(ErrorKind::kRequest, part, [&] { place(variables); });
  };
  refuse("RANK is set but empty", with(kTorchrun, "RANK", ""));
  refuse("MASTER_ADDR is set but empty", with(kTorchrun, "MASTER_ADDR", ""));
  refuse("MASTER_PORT is not set", without(kTorchrun, "MASTER_PORT"));
  refuse("MASTER_PORT: expected an integer from 1 to 65535, found \"70000\"",
         with(kTorchrun, "MASTER_PORT", "70000"));
  refuse("RANK is 8, but WORLD_SIZE is 8", with(kTorchrun, "RANK", "8"));
  refuse("RANK is set, but WORLD_SIZE is not", without(kTorchrun, "WORLD_SIZE"));
  refuse("WORLD_SIZE is 8, but RANK is not set", without(kTorchrun, "RANK"));
  refuse("WORLD_SIZE: expected an integer from 1 to 4096, found \"0\"", with(kTorchrun, "WORLD_SIZE", "0"));
  refuse("WORLD_SIZE: expected an integer", with(kTorchrun, "WORLD_SIZE", "8x"));
  refuse("LOCAL_RANK: expected an integer from 0 to 3", with(kTorchrun, "LOCAL_RANK", "4"));
  refuse("SLURM_PROCID is set, but SLURM_NTASKS is not", {{"SLURM_PROCID", "0"}});
}

}  // namespace
}  // namespace orrery::app
