#include "orrery/app/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <optional>
#include <set>

#include "orrery/app/report.h"
#include "orrery/base/clock.h"
#include "orrery/base/error.h"
#include "orrery/comm/processes.h"

extern char** environ;

namespace orrery::app {
namespace {

// Ranks that hear of a loss end by themselves. One that has not, some seconds after a loss that nobody else
// has told yet, or soon after the others told it, cannot: it is stopped.
constexpr double kGraceSeconds = 3, kGraceOnceTold = 1;
// A stopped rank counts as lost after as long as one that is silent.
constexpr double kStoppedSeconds = 10;

/// A null-terminated list as exec takes it.
class Strings {
 public:
  explicit Strings(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& s : strings_) pointers_.push_back(s.data());
    pointers_.push_back(nullptr);
  }
  char* const* get() { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

/// The environment of a rank: ours, and its place in torchrun's words.
std::vector<std::string> environment_of(int rank, int ranks, int port) {
  const std::pair<const char*, std::string> own[] = {{"RANK", std::to_string(rank)},
                                                     {"WORLD_SIZE", std::to_string(ranks)},
                                                     {"LOCAL_RANK", std::to_string(rank)},
                                                     {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
                                                     {"MASTER_ADDR", "127.0.0.1"},
                                                     {"MASTER_PORT", std::to_string(port)},
                                                     {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  std::vector<std::string> all;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const auto is_own = [&](const auto& o) { return text.substr(0, text.find('=')) == o.first; };
    if (std::none_of(std::begin(own), std::end(own), is_own)) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(concat(name, "=", value));
  return all;
}

/// Between fork and exec only calls that are safe there. A process group of its own: Ctrl-C on the terminal
/// reaches this program alone, which passes it on once.
[[noreturn]] void become_rank(pid_t parent, char* const* arguments, char* const* environment) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(exit_code(ErrorKind::kPeer));  // it died before we asked to be told
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::execve("/proc/self/exe", arguments, environment);
  ::_exit(exit_code(ErrorKind::kResource));
}

/// The ranks as their parent sees them.
class Ranks {
 public:
  Ranks(const std::string& command, const std::vector<std::string>& words, int ranks, int port) {
    std::vector<std::string> arguments = {"orrery", command};
    arguments.insert(arguments.end(), words.begin(), words.end());
    Strings argv(arguments);
    const pid_t parent = ::getpid();
    for (int rank = 0; rank < ranks; ++rank) {
      Strings environment(environment_of(rank, ranks, port));
      const pid_t pid = ::fork();
      if (pid == 0) become_rank(parent, argv.get(), environment.get());
      if (pid < 0) {
        const int error = errno;
        signal_all(SIGKILL);
        fail(ErrorKind::kResource, "cannot start rank ", rank, ": ", std::strerror(error));
      }
      alive_.push_back(pid);
      status_.emplace_back();
      stopped_.emplace_back();
    }
  }

  bool any_alive() const {
    return std::any_of(alive_.begin(), alive_.end(), [](pid_t p) { return p != 0; });
  }

  /// Whether all that have not ended are stopped.
  bool all_stopped() const {
    for (size_t rank = 0; rank < alive_.size(); ++rank)
      if (alive_[rank] != 0 && !stopped_[rank]) return false;
    return true;
  }

  void signal_all(int number) const {
    for (const pid_t pid : alive_)
      if (pid != 0) ::kill(pid, number);
  }

  /// Ends those that cannot by themselves.
  void end_all() {
    for (size_t rank = 0; rank < alive_.size(); ++rank)
      if (alive_[rank] != 0) ended_.insert(static_cast<int>(rank));
    signal_all(SIGKILL);
  }

  /// Collects those that have ended or stopped; the first that ended other than with 0, or is stopped for
  /// too long, is the culprit.
  void reap() {
    for (size_t rank = 0; rank < alive_.size(); ++rank) {
      int status = 0;
      if (alive_[rank] != 0 && ::waitpid(alive_[rank], &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        if (WIFSTOPPED(status))
          stopped_[rank].emplace();
        else if (WIFCONTINUED(status))
          stopped_[rank].reset();
        else
          end(rank, status);
      }
      if (alive_[rank] != 0 && stopped_[rank] && stopped_[rank]->seconds() > kStoppedSeconds)
        blame(rank, /*blames=*/false, kGraceOnceTold);
    }
  }

  std::optional<int> culprit() const { return culprit_; }
  /// Seconds that the others get from then on.
  double grace() const { return grace_; }
  int status(int rank) const { return status_[static_cast<size_t>(rank)].value_or(0); }

  std::string end_of(int rank) const {
    if (ended_.contains(rank)) return "gave no sign of life";
    if (WIFSIGNALED(status(rank)))
      return concat("was killed by signal ", WTERMSIG(status(rank)), " (",
                    ::strsignal(WTERMSIG(status(rank))), ")");
    return concat("ended with exit code ", WEXITSTATUS(status(rank)));
  }

  bool agree() const {
    return std::all_of(status_.begin(), status_.end(), [&](const auto& s) { return s == status_[0]; });
  }

 private:
  void end(size_t rank, int status) {
    alive_[rank] = 0;
    status_[rank] = status;
    if (status == 0) return;
    const bool blames = WIFEXITED(status) && WEXITSTATUS(status) == exit_code(ErrorKind::kPeer);
    blame(rank, blames, blames ? kGraceOnceTold : kGraceSeconds);
  }

  /// The first is to blame; but one that says that another is, is not.
  void blame(size_t rank, bool blames, double grace) {
    if (culprit_ && (blames || !blamed_)) return;
    culprit_ = static_cast<int>(rank), blamed_ = blames, grace_ = grace;
  }

  std::vector<pid_t> alive_;                       // 0: has ended
  std::vector<std::optional<int>> status_;         // as waitpid gives it
  std::vector<std::optional<Stopwatch>> stopped_;  // since when
  std::set<int> ended_;                            // by us
  std::optional<int> culprit_;
  bool blamed_ = false;  // the culprit says that it is another
  double grace_ = 0;
};

/// The signals that the parent waits for; blocked in it and in the threads that it starts.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, number);
  return set;
}

}  // namespace

int launch_processes(const std::string& command, const std::vector<std::string>& words, int count) {
  const sigset_t watched = watched_signals();
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  const comm::StoreServer store;
  Ranks ranks(command, words, count, store.port());
  std::optional<Stopwatch> since_loss;
  bool cancelled = false;
  for (ranks.reap(); ranks.any_alive(); ranks.reap()) {
    if (ranks.culprit() && !since_loss) since_loss.emplace();
    if (since_loss && (since_loss->seconds() > ranks.grace() || ranks.all_stopped())) ranks.end_all();
    const timespec tick = {0, 100'000'000};
    const int number = ::sigtimedwait(&watched, nullptr, &tick);
    if (number == SIGINT || number == SIGTERM) ranks.signal_all(number), cancelled = true;
  }
  if (ranks.agree() && WIFEXITED(ranks.status(0))) return WEXITSTATUS(ranks.status(0));
  if (cancelled) return exit_code(ErrorKind::kCancelled);  // before they could say so together
  const int culprit = ranks.culprit().value();
  std::cerr << error_line(
                   Error(ErrorKind::kPeer,
                         concat("rank ", culprit, " ", ranks.end_of(culprit), "; when last heard of it was ",
                                store.last_operation(culprit).value_or("before its first exchange"))))
            << std::endl;
  return exit_code(ErrorKind::kPeer);
}

}  // namespace orrery::app
