#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "orrery/app/environment.h"
#include "orrery/comm/mesh.h"
#include "orrery/comm/processes.h"
#include "orrery/config/flags.h"
#include "orrery/platform/thread.h"

namespace orrery::app {

/// This process's part in a command that many processes run together, or that it runs alone. One per process.
class Session {
 public:
  /// Joins the others, if there are any, and makes the plan's mesh with them; the plan then says how many
  /// ranks there are. When another rank is lost later, the process prints which and ends itself. Errors:
  /// request (a plan of another number of ranks, or one that wants to start ranks itself), those of
  /// comm::join.
  Session(const std::optional<comm::Place>& place, config::Plan& plan);

  /// Null where this process is alone.
  const std::shared_ptr<const comm::Mesh>& mesh() const { return mesh_; }

  /// How the ranks share the work.
  const config::Factors& factors() const { return factors_; }

  /// Whether this process prints and writes.
  bool leads() const { return !mesh_ || mesh_->rank() == 0; }

  /// comm::together over all processes.
  void together(const std::function<void()>& fn) const;

  /// Runs fn, which returns an exit code, and tells the others how it ended: well, or with an error of this
  /// process alone. What fn throws comes out; an error on which all agree is said by the leader only, so that
  /// on the others its exit code comes back.
  int run(const std::function<int()>& fn) const;

 private:
  config::Factors factors_;
  std::shared_ptr<const comm::Mesh> mesh_;
};

/// Ends the process some seconds after a rank has failed, if the other ranks are still inside their
/// computations; not if it is destroyed before.
class EndIfStuck {
 public:
  explicit EndIfStuck(double seconds = 4) : seconds_(seconds) {}
  ~EndIfStuck();

  /// The error is printed and gives the exit code. Any thread; the first counts.
  void after(const Error& error);

 private:
  const double seconds_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::optional<platform::Thread> thread_;  // uses what stands above
};

/// A command that makes things with `generate`'s options on many ranks: parses `words`, prints help if it is
/// asked for, starts ranks as processes if the plan wants that, joins the others, and runs fn in the session.
/// Returns the exit code.
int run_session(const std::string& command, const std::vector<std::string>& words,
                const Environment& environment,
                const std::function<int(const Session& session, config::Arguments& arguments)>& fn);

}  // namespace orrery::app
