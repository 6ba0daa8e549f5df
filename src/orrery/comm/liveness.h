#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/comm/c10d_store.h"
#include "orrery/comm/process_id.h"
#include "orrery/comm/status.h"

namespace orrery::comm {

/// How closely the ranks of a run look after each other.
struct Watch {
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds lost{10'000};  // without a sign of life for so long a rank counts as lost
  std::chrono::milliseconds no_progress{30 * 60 * 1000};  // … and one that lives but holds the others up

  /// Called once, on a thread of its own, when the run has failed on another rank, with a line that names it
  /// and its last operation. Waiting exchanges have failed by then, but a thread may still be inside a long
  /// kernel: a program prints the line and ends the process.
  std::function<void(const std::string& message)> on_loss;

  std::chrono::milliseconds join{60'000};  // how long ranks wait for each other at the start
};

/// What this process rank knows of the others and they of it. One thread tells the store what this rank does
/// and reads what the others do (the beat); another one looks at that, at the clock and at the ends of
/// processes, so that it notices a store that does not answer too. Functions may be called on any thread.
class Liveness {
 public:
  struct Setting {
    std::string run;  // prefix of the store's keys
    int rank = 0;
    std::vector<ProcessId> processes;  // by rank
    std::string store_owner;    // what is lost when the store is: "rank 0" or "the launcher", for messages
    bool serves_store = false;  // this process does
    Watch watch;
  };

  /// `store`: a connection of its own. The statuses of all ranks must be in the store already.
  Liveness(Setting setting, std::unique_ptr<Store> store);

  /// Leaves: tells the others, if the run has not failed, and waits, where this process serves the store,
  /// until all others have left. If finish() was not called, the others take it as a failure.
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  int rank() const;

  /// The groups that ranks are in, for judge(); before the first exchange.
  void set_shape(const MeshShape& shape);

  /// This rank enters its next exchange of kAxes[axis], whose number comes back. Error of kind peer if the
  /// run has failed.
  int64_t enter(size_t axis);

  /// Waits in exchange `exchange` of kAxes[axis] until `done` holds, which is asked under the lock under
  /// which change() works. Error of kind peer if the run fails first; of the failure's own kind if it was
  /// found here.
  void wait(size_t axis, int64_t exchange, const std::function<bool()>& done);
  void change(const std::function<void()>& fn);

  /// A message of the rank's exchange came: what it did last is known better than from its last beat.
  void heard(int rank, size_t axis, int64_t exchange);

  /// The connection with a rank broke. Why is found out from the rank's process and status; if they say
  /// nothing for a while, `reason` is the failure.
  void suspect(int rank, const std::string& reason);

  /// This rank fails: the others hear of it, as returned, before this returns, unless the store is lost.
  std::string fail(std::string_view reason);

  /// The run fails because of what this rank has found out, in words that name the ranks.
  void fail(Failure failure);

  /// This rank has done its work; its next exchange takes that back.
  void finish();

  /// Why the run has failed, if it has.
  std::optional<std::string> failure() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the threads
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

/// Where in the store a rank's status is.
std::string status_key(const std::string& run, int rank);

}  // namespace orrery::comm
