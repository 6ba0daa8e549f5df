#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "orrery/comm/liveness.h"
#include "orrery/comm/mesh.h"

namespace orrery::comm {

/// Which of the processes of a run this one is, and where they meet.
struct Place {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this host
  std::string address = "127.0.0.1";   // of the store
  int port = 0;
  bool store_elsewhere = false;  // a process that is no rank (a launcher) serves the store; else rank 0 does
  std::string run = "orrery";    // tells runs, or attempts of one, apart where they share a store
};

/// The ranks of a run that are processes, seen from one of them, which join() gives. Any thread. The
/// destructor says that this rank leaves (liveness.h); a rank that did not finish before is a failure of the
/// run.
class Processes final : public Ranks {
 public:
  struct State;
  explicit Processes(std::unique_ptr<State> state);
  ~Processes() override;

  int rank() const;
  int size() const;

  /// The others have heard of it when this returns, unless they cannot be told. `rank` is the own one.
  std::string fail(int rank, std::string_view reason) override;

  /// A rank that has finished may leave; its next exchange takes that back.
  void finish(int rank) override;

  /// Why the run has failed, if it has: a line that names the rank.
  std::optional<std::string> failure() const;

  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// Meets the other processes of the run, waits for all of them, and begins to watch them and be watched. A
/// run of one process needs no store. Errors: request (a place that cannot be), resource (the store cannot be
/// served, or another run uses it), peer (the store cannot be reached, or a rank does not come in time); the
/// address and missing ranks are named. Changes the process as Store does (c10d_store.h).
std::shared_ptr<Processes> join(const Place& place, Watch watch = {});

/// The mesh of this process; every rank calls it once, with the same shape, whose size is that of the run.
/// Makes all groups in the order of kAxes. Axes of one rank are Solo. The mesh keeps `processes` alive, and
/// its fail() and finish() are theirs. One thread per rank waits at a time.
Mesh make_process_mesh(std::shared_ptr<Processes> processes, const MeshShape& shape,
                       const Decorate& decorate = {});

/// Serves the store of a run from a process that is no rank, on a free port. Any thread, one at a time.
class StoreServer {
 public:
  explicit StoreServer(std::string run = "orrery");
  ~StoreServer();
  int port() const;

  /// "at exchange 12 of group ulysses", as of the rank's last beat; nothing if it has not joined.
  std::optional<std::string> last_operation(int rank) const;

 private:
  std::string run_;
  std::unique_ptr<Store> store_;
};

}  // namespace orrery::comm
