#include "orrery/comm/liveness.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "orrery/base/clock.h"
#include "orrery/base/text.h"
#include "orrery/platform/thread.h"

namespace orrery::comm {
namespace {

using std::chrono::milliseconds;
using Lock = std::unique_lock<std::mutex>;

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

/// Ends a poll() from another thread.
class Wake {
 public:
  Wake() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0) fail(ErrorKind::kResource, "cannot make an event descriptor");
  }
  ~Wake() { ::close(fd_); }
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  int descriptor() const { return fd_; }
  void call() { ::eventfd_write(fd_, 1); }
  void answer() {
    eventfd_t calls;
    ::eventfd_read(fd_, &calls);
  }

 private:
  int fd_;
};

bool same_but_beat(Status a, const Status& b) {
  a.beat = b.beat;
  return to_string(a) == to_string(b);
}

}  // namespace

/// `mutex` guards everything but `store`, which is the beat's.
struct Liveness::State {
  explicit State(Setting s, std::unique_ptr<Store> connection)
      : setting(std::move(s)), store(std::move(connection)) {
    view.self = setting.rank;
    view.heartbeat = seconds(setting.watch.heartbeat);
    view.lost = seconds(setting.watch.lost);
    view.no_progress = seconds(setting.watch.no_progress);
    view.ranks.resize(setting.processes.size());
    for (const auto& process : setting.processes) ends.push_back(comm::watch(process));
    ends[static_cast<size_t>(setting.rank)] = {};
  }

  const Setting setting;
  const std::unique_ptr<Store> store;
  Wake wake;  // of the watching thread
  std::vector<EndOfProcess> ends;

  std::mutex mutex;
  std::condition_variable changed;  // an exchange, or the failure
  std::condition_variable beats;    // the beat is to hurry, has answered, or has ended
  Status mine;
  View view;
  std::optional<Failure> failure;
  bool found_here = false;          // the failure
  int64_t asked = 0, answered = 0;  // beats that somebody waits for
  Stopwatch since_answer, since_error;
  std::string store_error;
  bool beat_ended = false, leaving = false;

  Peer& own() { return view.ranks[static_cast<size_t>(setting.rank)]; }

  void record(Failure what, bool here) {
    if (failure) return;
    failure = std::move(what);
    found_here = here;
    mine.failure = failure->message;
    changed.notify_all();
    wake.call();
  }

  void throw_if_failed() const {
    if (!failure) return;
    if (failure->kind == ErrorKind::kInternal) throw Error(failure->kind, failure->message);
    throw Error(ErrorKind::kPeer, concat(failure->message, "; rank ", setting.rank, " was ", operation(mine)),
                "peer");
  }

  bool store_answers() const { return !beat_ended && since_answer.seconds() < 3 * view.heartbeat; }

  /// Until the others can know what `mine` says, or cannot be told. That takes a millisecond unless something
  /// is wrong; a store that has been silent for a while is not waited for.
  void publish(Lock& lock) {
    const int64_t ticket = ++asked;
    beats.notify_all();
    if (store_answers())
      beats.wait_for(lock, 2 * setting.watch.heartbeat, [&] { return answered >= ticket || beat_ended; });
  }

  /// The store ends with the process that serves it, so that one stays until the others have `heard`.
  void stay_until(Lock& lock, milliseconds at_most, const std::function<bool(const Peer&)>& heard) {
    if (!setting.serves_store) return;
    const Stopwatch watch;
    while (watch.seconds() < seconds(at_most) && store_answers() &&
           !std::ranges::all_of(view.ranks, [&](const Peer& peer) {
             return &peer == &own() || peer.ended || peer.status.activity == Activity::kLeft ||
                    peer.silent >= view.lost || heard(peer);
           })) {
      publish(lock);
      beats.wait_for(lock, setting.watch.heartbeat / 20);
    }
  }

  void tell_failure(Lock& lock) {
    publish(lock);
    stay_until(lock, 2 * setting.watch.heartbeat,
               [](const Peer& peer) { return !peer.status.failure.empty(); });
  }

  void look(Lock& lock);
  void beat();
  void mark_ended(Lock& lock);
  void judge_now();
  void watch();
};

/// One beat: the own status into the store, the others' out of it.
void Liveness::State::look(Lock& lock) {
  const int64_t ticket = asked;
  ++mine.beat;
  const std::string key = status_key(setting.run, setting.rank), text = to_string(mine);
  lock.unlock();
  std::vector<std::string> keys;
  for (size_t r = 0; r < setting.processes.size(); ++r)
    keys.push_back(status_key(setting.run, static_cast<int>(r)));
  store->set(key, text);
  const auto texts = store->get(keys);
  lock.lock();
  // A process that was itself stopped for a while must not take the others' silence in the meantime for loss.
  const double passed = std::min(since_answer.seconds(), 2 * view.heartbeat);
  since_answer = {};
  for (size_t r = 0; r < texts.size(); ++r) {
    Peer& peer = view.ranks[r];
    Status status = parse_status(texts[r]);
    peer.silent = status.beat == peer.status.beat ? peer.silent + passed : 0;
    peer.unchanged = same_but_beat(status, peer.status) ? peer.unchanged + passed : 0;
    peer.status = std::move(status);
  }
  answered = ticket;
}

void Liveness::State::beat() {
  Lock lock(mutex);
  try {
    while (!leaving) {
      look(lock);
      beats.notify_all();
      wake.call();
      // Twice as often as it must be: what was said and heard is then half as old when it matters.
      beats.wait_for(lock, setting.watch.heartbeat / 2, [&] { return leaving || asked > answered; });
    }
  } catch (const std::exception& e) {
    if (!lock.owns_lock()) lock.lock();
    store_error = e.what();
    since_error = {};
  }
  beat_ended = true;
  beats.notify_all();
  wake.call();
}

/// Looks at the ends of processes. What an ended one said last is read before anything is concluded.
void Liveness::State::mark_ended(Lock& lock) {
  bool news = false;
  for (size_t r = 0; r < ends.size(); ++r) {
    pollfd of{ends[r].descriptor(), POLLIN, 0};
    if (of.fd < 0 || ::poll(&of, 1, 0) != 1) continue;
    view.ranks[r].ended = news = true;
    ends[r] = {};
  }
  if (news) publish(lock);
}

void Liveness::State::judge_now() {
  // A finished rank is left in peace; if it goes on, it finds out then.
  if (failure || mine.activity >= Activity::kFinished) return;
  View now = view;
  Peer& self = now.ranks[static_cast<size_t>(setting.rank)];
  if (!same_but_beat(self.status, mine)) self.unchanged = 0;
  self.status = mine;
  if (auto found = judge(now)) return record(std::move(*found), false);
  // A process closes its connections a moment before it has ended, which says more.
  if (!store_error.empty() && since_error.seconds() >= view.heartbeat / 2)
    record({ErrorKind::kPeer, concat(setting.store_owner, " is lost: ", store_error)}, false);
  else if (since_answer.seconds() >= view.lost)
    record({ErrorKind::kPeer, concat(setting.store_owner, " is lost: its store has not answered for ",
                                     human_seconds(since_answer.seconds()))},
           false);
}

void Liveness::State::watch() {
  const int tick = static_cast<int>(std::max<int64_t>(1, setting.watch.heartbeat.count() / 4));
  Stopwatch since_tick;
  Lock lock(mutex);
  while (!leaving && !failure) {
    std::vector<pollfd> fds = {{wake.descriptor(), POLLIN, 0}};
    for (const auto& end : ends) fds.push_back({end.descriptor(), POLLIN, 0});  // negative ones are ignored
    lock.unlock();
    ::poll(fds.data(), fds.size(), tick);
    wake.answer();
    lock.lock();
    for (Peer& peer : view.ranks)
      if (!peer.suspicion.empty()) peer.suspected += std::min(since_tick.seconds(), 2 * view.heartbeat);
    since_tick = {};
    mark_ended(lock);
    if (!leaving) judge_now();
  }
  if (!failure || found_here) return;
  const std::string message = failure->message;
  tell_failure(lock);
  lock.unlock();
  if (setting.watch.on_loss) setting.watch.on_loss(message);
}

struct Liveness::Threads {
  platform::Thread beat, watch;
};

Liveness::Liveness(Setting setting, std::unique_ptr<Store> store)
    : state_(std::make_shared<State>(std::move(setting), std::move(store))) {
  auto beat = platform::start_thread("heartbeat", 1, [state = state_] { state->beat(); });
  try {
    auto watch = platform::start_thread("watcher", 1, [state = state_] { state->watch(); });
    threads_ = std::make_unique<Threads>(Threads{std::move(beat), std::move(watch)});
  } catch (...) {
    change([&] { state_->leaving = true; });
    state_->beats.notify_all();
    throw;
  }
}

Liveness::~Liveness() {
  State& s = *state_;
  {
    Lock lock(s.mutex);
    if (!s.failure && s.mine.activity < Activity::kFinished)
      s.record({ErrorKind::kPeer,
                concat("rank ", s.setting.rank, " has left before the end, ", operation(s.mine))},
               true);
    if (s.failure) {
      s.tell_failure(lock);
    } else {
      s.mine.activity = Activity::kLeft;
      s.publish(lock);
      s.stay_until(lock, milliseconds::max(), [](const Peer&) { return false; });
    }
    s.leaving = true;
    s.beats.notify_all();
    s.wake.call();
    // A call into a store whose server is stopped does not come back. Its thread keeps what it needs alive;
    // the process is about to end, since the run has failed.
    const auto at_most = s.store_answers() ? 2 * s.setting.watch.heartbeat : s.setting.watch.heartbeat / 20;
    if (!s.beats.wait_for(lock, at_most, [&] { return s.beat_ended; }))
      new platform::Thread(std::move(threads_->beat));
  }
}

int Liveness::rank() const { return state_->setting.rank; }

void Liveness::set_shape(const MeshShape& shape) {
  change([&] { state_->view.shape = shape; });
}

int64_t Liveness::enter(size_t axis) {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.mine.activity = Activity::kRuns;
  s.mine.axis = axis;
  s.mine.exchange = ++s.mine.entered[axis];
  s.throw_if_failed();
  return s.mine.exchange;
}

void Liveness::wait(size_t axis, int64_t exchange, const std::function<bool()>& done) {
  State& s = *state_;
  Lock lock(s.mutex);
  const Activity before = std::exchange(s.mine.activity, Activity::kWaits);
  s.mine.axis = axis;
  s.mine.exchange = exchange;
  s.changed.wait(lock, [&] { return s.failure || done(); });
  s.mine.activity = before;
  s.throw_if_failed();
}

void Liveness::change(const std::function<void()>& fn) {
  const std::lock_guard lock(state_->mutex);
  fn();
  state_->changed.notify_all();
}

void Liveness::heard(int rank, size_t axis, int64_t exchange) {
  const std::lock_guard lock(state_->mutex);
  Peer& peer = state_->view.ranks[static_cast<size_t>(rank)];
  peer.heard_axis = axis;
  peer.heard = exchange;
}

void Liveness::suspect(int rank, const std::string& reason) {
  const std::lock_guard lock(state_->mutex);
  Peer& peer = state_->view.ranks[static_cast<size_t>(rank)];
  if (peer.suspicion.empty()) peer.suspicion = reason;
  ++state_->asked;
  state_->beats.notify_all();
}

std::string Liveness::fail(std::string_view reason) {
  State& s = *state_;
  Lock lock(s.mutex);
  std::string told = concat("rank ", s.setting.rank, " failed ", operation(s.mine), ": ", reason);
  s.record({ErrorKind::kPeer, told}, true);
  s.tell_failure(lock);
  return told;
}

void Liveness::fail(Failure failure) {
  Lock lock(state_->mutex);
  state_->record(std::move(failure), true);
  state_->tell_failure(lock);
}

void Liveness::finish() {
  Lock lock(state_->mutex);
  state_->mine.activity = Activity::kFinished;
  state_->publish(lock);
}

std::optional<std::string> Liveness::failure() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->failure) return std::nullopt;
  return state_->failure->message;
}

std::string status_key(const std::string& run, int rank) { return concat(run, "/status/", rank); }

}  // namespace orrery::comm
