#include "orrery/app/place.h"

#include <array>
#include <charconv>

#include "orrery/base/error.h"
#include "orrery/comm/hash.h"

namespace orrery::app {
namespace {

/// How a launcher calls the same things.
struct Launcher {
  const char *name, *rank, *size, *local_rank, *local_size;
  std::array<const char*, 2> job;          // variables that together name the start, null where there is none
  std::array<const char*, 2> counts = {};  // where it lists the ranks of every host, "2(x3),1"
};
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", {}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE"}},
    {"MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_NTASKS_PER_NODE",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}},
};

constexpr int kMostRanks = 4096;

std::string get(const Lookup& variable, const char* name) {
  const auto value = variable(name);
  require(!value || !value->empty(), name, " is set but empty: give it a value or unset it");
  return value.value_or("");
}

std::optional<int> number(const Lookup& variable, const char* name, int least, int most) {
  const std::string text = get(variable, name);
  if (text.empty()) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= least && value <= most, name,
          ": expected an integer from ", least, " to ", most, ", found \"", text, "\"");
  return value;
}

/// The first host of Slurm's list: "node[03-07,9],login" → "node03".
std::string first_host(const std::string& list) {
  const size_t end = list.find_first_of(",[");
  std::string host = list.substr(0, end);
  if (end != std::string::npos && list[end] == '[')
    host += list.substr(end + 1, list.find_first_of(",-]", end + 1) - end - 1);
  return host;
}

/// Where the ranks meet if nobody said: this host if all of them are on it, else what Slurm knows.
std::string meeting_host(const Lookup& variable, const Launcher& launcher, const comm::Place& place) {
  if (const std::string address = get(variable, "MASTER_ADDR"); !address.empty()) return address;
  if (place.local_size == place.size) return "127.0.0.1";
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const std::string hosts = get(variable, name); !hosts.empty()) return first_host(hosts);
  fail(ErrorKind::kRequest, "MASTER_ADDR is not set: ", launcher.name, " started ", place.size,
       " ranks on several hosts; expected the address of rank 0's host");
}

int meeting_port(const Lookup& variable, const Launcher& launcher, int64_t job) {
  if (const auto port = number(variable, "MASTER_PORT", 1, 65535)) return *port;
  std::string start;
  for (const char* name : launcher.job)
    if (name) start += variable(name).value_or("") + "/";
  if (start.find_first_not_of('/') == std::string::npos) start = std::to_string(job);
  return 20000 + static_cast<int>(comm::hash_of(start) %
                                  12000);  // below the ports that systems give out by themselves
}

/// Ranks on this host. Slurm tells it for all hosts or, with one host, not at all.
int local_size(const Lookup& variable, const Launcher& launcher, int size) {
  if (const auto told = number(variable, launcher.local_size, 1, size)) return *told;
  for (const char* name : launcher.counts)
    if (const std::string counts = name ? get(variable, name) : ""; !counts.empty())
      return std::clamp(std::atoi(counts.c_str()), 1, size);
  return size;
}

}  // namespace

std::optional<comm::Place> read_place(const Lookup& variable, int64_t job) {
  for (const Launcher& launcher : kLaunchers) {
    const auto size = number(variable, launcher.size, 1, kMostRanks);
    const auto rank = number(variable, launcher.rank, 0, kMostRanks - 1);
    const bool torchrun = &launcher == std::begin(kLaunchers);
    // Inside an allocation Slurm sets its sizes for programs that it did not start.
    if (!rank && (!size || !torchrun)) continue;
    require(size.has_value(), launcher.rank, " is set, but ", launcher.size, " is not: expected both, as ",
            launcher.name, " sets them");
    if (*size == 1 && !rank) return std::nullopt;
    require(rank.has_value(), launcher.size, " is ", *size, ", but ", launcher.rank,
            " is not set: start the program with ", launcher.name, ", or with --ranks ", *size);
    require(*rank < *size, launcher.rank, " is ", *rank, ", but ", launcher.size, " is ", *size,
            ": expected a rank from 0 to ", *size - 1);
    if (*size == 1) return std::nullopt;
    comm::Place place;
    place.rank = *rank, place.size = *size;
    place.local_size = local_size(variable, launcher, *size);
    place.local_rank =
        number(variable, launcher.local_rank, 0, place.local_size - 1).value_or(*rank % place.local_size);
    if (torchrun)
      for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
        require(!get(variable, name).empty(), name,
                " is not set, but RANK is: expected where the ranks meet");
    place.address = meeting_host(variable, launcher, place);
    place.port = meeting_port(variable, launcher, job);
    place.store_elsewhere = torchrun && variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
    // Attempts of one torchrun job share a store.
    if (torchrun) place.run += variable("TORCHELASTIC_RESTART_COUNT").value_or("");
    return place;
  }
  return std::nullopt;
}

}  // namespace orrery::app
