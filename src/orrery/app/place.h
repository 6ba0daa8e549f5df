#pragma once
#include <functional>
#include <optional>
#include <string>

#include "orrery/comm/processes.h"

namespace orrery::app {

/// Gives an environment variable's value; nothing if it is not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// This process's place among those that a launcher started together; nothing if none did. Read, the first
/// that is there: torchrun (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), Open
/// MPI (OMPI_COMM_WORLD_*), MPICH and Intel MPI (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID, SLURM_NTASKS,
/// SLURM_LOCALID). Where a launcher does not say where the ranks meet, MASTER_ADDR and MASTER_PORT do;
/// without them it is this host, or Slurm's first, and a port that follows from the job's name (`job`: a
/// number that the ranks of one start share and others do not, used where the launcher names no job).
///
/// Errors of kind request name the variable: empty, no number, out of range, missing beside another.
std::optional<comm::Place> read_place(const Lookup& variable, int64_t job);

}  // namespace orrery::app
