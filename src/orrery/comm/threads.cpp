#include "orrery/comm/threads.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "orrery/base/error.h"

namespace orrery::comm {

/// What one rank still waits for in one exchange.
struct Pending {
  std::vector<Extents> expected;
  std::vector<Message> messages;
  int missing = 0;  // peers whose message is expected, not empty, and not here
};

/// `mutex` guards every member, every Pending and every Shared group: exchanges take microseconds and come
/// between kernels that take much longer, so that one lock is enough and one look sees whether all ranks are
/// stuck.
struct ThreadRanks::State {
  struct Rank {
    std::string group;     // its last operation: exchange number `exchange` of `group`
    int64_t exchange = 0;  // from 1; 0 before the first
    const Pending* waits_for = nullptr;
    bool finished = false;
  };

  explicit State(int size) : ranks(static_cast<size_t>(size)) {}

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::optional<std::string> failure;  // of whom, where and why

  std::string operation(int rank) const {
    const Rank& r = ranks[static_cast<size_t>(rank)];
    return r.exchange == 0 ? "before its first exchange"
                           : concat("at exchange ", r.exchange, " of group ", r.group);
  }

  std::string told(int rank, std::string_view reason) const {
    return concat("rank ", rank, " failed ", operation(rank), ": ", reason);
  }

  void record_failure(int rank, std::string_view reason) {
    if (failure) return;
    failure = told(rank, reason);
    changed.notify_all();
  }

  void throw_if_failed(int rank) const {
    if (failure)
      throw Error(ErrorKind::kPeer, concat(*failure, "; rank ", rank, " was ", operation(rank)), "peer");
  }

  /// Who waits where, if somebody waits and nobody can end that; else nothing.
  std::optional<std::string> stuck() const {
    std::ostringstream out;
    bool somebody_waits = false;
    for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
      const Rank& r = ranks[static_cast<size_t>(i)];
      const bool waits = r.waits_for && r.waits_for->missing > 0;
      if (!waits && !r.finished) return std::nullopt;
      somebody_waits |= waits;
      out << (i ? ", rank " : "no rank can go on: rank ") << i << (waits ? " waits " : " has finished ")
          << operation(i);
    }
    if (!somebody_waits) return std::nullopt;
    return out.str();
  }
};

namespace {

/// One exchange of a group. It is complete, and forgotten, when all members have entered it.
struct Round {
  explicit Round(size_t size) : sent(size), pending(size) {}
  std::vector<std::vector<Message>> sent;
  std::vector<std::shared_ptr<Pending>> pending;  // null: that member has not entered yet
  size_t entered = 0;
};

/// What the views of a group share.
struct Shared {
  std::shared_ptr<ThreadRanks> ranks;
  std::string name;
  std::vector<int> members;
  std::map<int64_t, Round> rounds;  // those that some members have entered and others not

  /// Hands over what `from` sent to `to`; both have entered the round.
  void deliver(Round& round, size_t from, size_t to) const {
    Pending& pending = *round.pending[to];
    Message& message = round.sent[from][to];
    const Extents sent = extents_of(message);
    if (sent != pending.expected[from])
      fail(ErrorKind::kInternal, "group ", name, ": rank ", members[from], " sends ", to_string(sent),
           " to rank ", members[to], ", which expects ", to_string(pending.expected[from]));
    if (sent.empty()) return;  // nobody waits for it: the messages may have been taken already
    pending.messages[from] = std::move(message);
    --pending.missing;
  }
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(std::shared_ptr<Shared> shared, int rank, std::shared_ptr<Pending> pending)
      : shared_(std::move(shared)), rank_(rank), pending_(std::move(pending)) {}

  std::vector<Message> wait() override {
    ThreadRanks::State& all = shared_->ranks->state();
    std::unique_lock lock(all.mutex);
    all.throw_if_failed(rank_);
    auto& waits_for = all.ranks[static_cast<size_t>(rank_)].waits_for;
    waits_for = pending_.get();
    const auto stuck = all.stuck();
    if (stuck) all.record_failure(rank_, *stuck);
    all.changed.wait(lock, [&] { return pending_->missing == 0 || all.failure; });
    waits_for = nullptr;
    if (stuck) fail(ErrorKind::kInternal, *stuck);
    all.throw_if_failed(rank_);
    return std::move(pending_->messages);
  }

 private:
  std::shared_ptr<Shared> shared_;
  int rank_;  // in the mesh
  std::shared_ptr<Pending> pending_;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(shared_->members.size()); }

  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override {
    const auto size = shared_->members.size(), self = static_cast<size_t>(rank_);
    const int world_rank = shared_->members[self];
    ensure(to.size() == size && from.size() == size, "group ", shared_->name, ": expected ", size,
           " messages, got ", to.size(), " to send and ", from.size(), " to receive");
    auto pending = std::make_shared<Pending>();
    pending->expected.assign(from.begin(), from.end());
    pending->messages.resize(size);
    pending->missing =
        static_cast<int>(std::ranges::count_if(from, [](const Extents& e) { return !e.empty(); }));

    ThreadRanks::State& all = shared_->ranks->state();
    const std::lock_guard lock(all.mutex);
    auto& last = all.ranks[static_cast<size_t>(world_rank)];
    last.group = shared_->name;
    last.exchange = ++count_;
    all.throw_if_failed(world_rank);
    try {
      enter(self, std::move(to), pending);
    } catch (const Error& e) {
      all.record_failure(world_rank, e.message());
      throw;
    }
    all.changed.notify_all();
    return std::make_unique<ThreadExchange>(shared_, world_rank, std::move(pending));
  }

 private:
  void enter(size_t self, std::vector<Message> to, const std::shared_ptr<Pending>& pending) {
    const auto at = shared_->rounds.try_emplace(count_, to.size()).first;
    Round& round = at->second;
    round.sent[self] = std::move(to);
    round.pending[self] = pending;
    for (size_t peer = 0; peer < round.pending.size(); ++peer) {
      if (!round.pending[peer]) continue;
      shared_->deliver(round, self, peer);
      if (peer != self) shared_->deliver(round, peer, self);
    }
    if (++round.entered == round.pending.size()) shared_->rounds.erase(at);
  }

  std::shared_ptr<Shared> shared_;
  int rank_;  // in the group
  int64_t count_ = 0;
};

}  // namespace

ThreadRanks::ThreadRanks(int size) : state_(std::make_unique<State>(size)) {}
ThreadRanks::~ThreadRanks() = default;

std::string ThreadRanks::fail(int rank, std::string_view reason) {
  const std::lock_guard lock(state_->mutex);
  state_->record_failure(rank, reason);
  return state_->told(rank, reason);
}

void ThreadRanks::finish(int rank) {
  const std::lock_guard lock(state_->mutex);
  state_->ranks[static_cast<size_t>(rank)].finished = true;
  if (const auto stuck = state_->stuck()) state_->record_failure(rank, *stuck);
}

std::vector<std::unique_ptr<Group>> make_thread_group(std::shared_ptr<ThreadRanks> ranks, std::string name,
                                                      std::vector<int> members) {
  const auto shared =
      std::make_shared<Shared>(Shared{std::move(ranks), std::move(name), std::move(members), {}});
  std::vector<std::unique_ptr<Group>> views;
  for (int i = 0; i < static_cast<int>(shared->members.size()); ++i)
    views.push_back(std::make_unique<ThreadGroup>(shared, i));
  return views;
}

}  // namespace orrery::comm
