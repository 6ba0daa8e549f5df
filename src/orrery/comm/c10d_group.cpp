#include "orrery/comm/c10d_group.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "orrery/base/error.h"
#include "orrery/comm/c10d_state.h"
#include "orrery/comm/hash.h"
#include "orrery/comm/packing.h"
#include "orrery/platform/thread.h"

namespace orrery::comm {

class GlooDevice {
 public:
  std::shared_ptr<::gloo::transport::Device> device;
};

namespace {

using c10d::ProcessGroupGloo;
using Work = c10::intrusive_ptr<c10d::Work>;

/// Liveness is watched, not guessed from how long a peer takes.
constexpr auto kNever = std::chrono::hours(24 * 365);

/// What goes before the data of an exchange. A message of another size than the receiver has room for would
/// end the process inside gloo, and a smaller one would arrive unnoticed.
struct Header {
  int64_t exchange = 0;
  int64_t bytes = 0;
  uint64_t hash = 0;       // of what the extents look like
  char extents[232] = {};  // the beginning of that
};
static_assert(sizeof(Header) == 256);

Header header_of(int64_t exchange, const Extents& extents) {
  const std::string text = to_string(extents);
  Header header{exchange, packed_bytes(extents), hash_of(text), {}};
  text.copy(header.extents, sizeof header.extents - 1);
  return header;
}

bool operator==(const Header& a, const Header& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

Tensor bytes_of(const Header& header) {
  Tensor bytes = at::empty({sizeof header}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), &header, sizeof header);
  return bytes;
}

/// One exchange on its way. The lists have an entry per member; `arrived` and `messages` are guarded by the
/// lock of the liveness, everything else is the progress thread's once it is queued.
struct Transfer {
  explicit Transfer(size_t size)
      : expected(size),
        headers(size),
        header_works(size),
        broken(size),
        parts(size),
        part_works(size),
        messages(size) {}
  int64_t number = 0;
  std::vector<Extents> expected;
  std::vector<Tensor> headers;  // received
  std::vector<Work> header_works;
  std::vector<std::string> broken;  // why nothing could be sent to that member; "" if it could
  std::vector<Tensor> parts;        // received, packed
  std::vector<Work> part_works;
  std::vector<std::pair<size_t, Work>> sends;
  std::vector<Message> messages;
  bool arrived = false;
};

/// Thrown on the progress thread when the group is to end; nobody sees it.
struct Aborted {};

class GlooExchange final : public Exchange {
 public:
  GlooExchange(std::shared_ptr<Liveness> liveness, size_t axis, std::shared_ptr<Transfer> transfer)
      : liveness_(std::move(liveness)), axis_(axis), transfer_(std::move(transfer)) {}

  std::vector<Message> wait() override {
    liveness_->wait(axis_, transfer_->number, [&] { return transfer_->arrived; });
    return std::move(transfer_->messages);
  }

 private:
  std::shared_ptr<Liveness> liveness_;
  size_t axis_;
  std::shared_ptr<Transfer> transfer_;
};

class GlooGroup final : public Group {
 public:
  GlooGroup(GlooPlace place, int rank, c10::intrusive_ptr<ProcessGroupGloo> gloo,
            std::shared_ptr<Liveness> liveness)
      : place_(std::move(place)), rank_(rank), gloo_(std::move(gloo)), liveness_(std::move(liveness)) {
    thread_.emplace(platform::start_thread(concat("group ", kAxes[place_.axis]), 1, [this] { progress(); }));
  }

  ~GlooGroup() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(place_.members.size()); }
  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override;

 private:
  size_t self() const { return static_cast<size_t>(rank_); }
  Work send(size_t peer, Tensor bytes, int64_t number, int part);
  Work receive(size_t peer, Tensor bytes, int64_t number, int part);
  void post(Transfer& transfer, size_t peer, const Message& message);
  void finish(size_t peer, Work work, std::string broken = {});
  void check(Transfer& transfer, size_t peer);
  void carry(Transfer& transfer);
  void progress();

  const GlooPlace place_;
  const int rank_;  // in the group
  const c10::intrusive_ptr<ProcessGroupGloo> gloo_;
  const std::shared_ptr<Liveness> liveness_;
  std::mutex gloo_mutex_;  // its calls count themselves without a lock

  std::mutex mutex_;  // guards what follows
  std::condition_variable queued_;
  std::deque<std::shared_ptr<Transfer>> queue_;
  Work waits_for_;
  bool closing_ = false, aborting_ = false;

  int64_t last_ = 0;    // the exchange that was entered last
  bool ended_ = false;  // the thread; guarded by the liveness
  std::optional<platform::Thread> thread_;
};

int tag_of(int64_t number, int part) { return static_cast<int>((2 * number + part) & 0x3fffffff); }

Work GlooGroup::send(size_t peer, Tensor bytes, int64_t number, int part) {
  std::vector<Tensor> tensors = {std::move(bytes)};
  const std::lock_guard lock(gloo_mutex_);
  return gloo_->send(tensors, static_cast<int>(peer), tag_of(number, part));
}

Work GlooGroup::receive(size_t peer, Tensor bytes, int64_t number, int part) {
  std::vector<Tensor> tensors = {std::move(bytes)};
  const std::lock_guard lock(gloo_mutex_);
  return gloo_->recv(tensors, static_cast<int>(peer), tag_of(number, part));
}

std::unique_ptr<Exchange> GlooGroup::exchange(std::vector<Message> to, std::span<const Extents> from) {
  const size_t size = place_.members.size();
  ensure(to.size() == size && from.size() == size, "group ", kAxes[place_.axis], ": expected ", size,
         " messages, got ", to.size(), " to send and ", from.size(), " to receive");
  const auto transfer = std::make_shared<Transfer>(size);
  transfer->number = last_ = liveness_->enter(place_.axis);
  transfer->expected.assign(from.begin(), from.end());
  const Extents own = extents_of(to[self()]);
  ensure(own == from[self()], "group ", kAxes[place_.axis], ": rank ", liveness_->rank(), " sends itself ",
         comm::to_string(own), " but expects ", comm::to_string(from[self()]));
  transfer->messages[self()] = std::move(to[self()]);
  for (size_t i = 1; i < size; ++i) {
    const size_t peer = (self() + i) % size;  // everybody begins with another one
    post(*transfer, peer, std::exchange(to[peer], {}));
  }
  const std::lock_guard lock(mutex_);
  queue_.push_back(transfer);
  queued_.notify_one();
  return std::make_unique<GlooExchange>(liveness_, place_.axis, transfer);
}

/// Sends, and makes ready for the peer's header.
void GlooGroup::post(Transfer& transfer, size_t peer, const Message& message) {
  const Header header = header_of(transfer.number, extents_of(message));
  const Tensor part = header.bytes > 0 ? pack(message) : Tensor();
  transfer.headers[peer] = at::empty({sizeof(Header)}, at::kByte);
  try {
    transfer.header_works[peer] = receive(peer, transfer.headers[peer], transfer.number, 0);
    transfer.sends.emplace_back(peer, send(peer, bytes_of(header), transfer.number, 0));
    if (part.defined()) transfer.sends.emplace_back(peer, send(peer, part, transfer.number, 1));
  } catch (const std::exception& e) {
    transfer.broken[peer] = reason_of(e);  // for the progress thread
  }
}

/// Waits for the work on the progress thread. What is `broken` already is not waited for.
void GlooGroup::finish(size_t peer, Work work, std::string broken) {
  {
    const std::lock_guard lock(mutex_);
    if (aborting_) throw Aborted();
    waits_for_ = work;
  }
  bool done = false;
  try {
    if (broken.empty()) done = work->wait(kNever);
  } catch (const std::exception& e) {
    broken = reason_of(e);
  }
  {
    const std::lock_guard lock(mutex_);
    waits_for_.reset();
  }
  if (!broken.empty()) liveness_->suspect(place_.members[peer], broken);
  if (!done) throw Aborted();
}

void GlooGroup::check(Transfer& transfer, size_t peer) {
  finish(peer, std::move(transfer.header_works[peer]), std::move(transfer.broken[peer]));
  liveness_->heard(place_.members[peer], place_.axis, transfer.number);
  Header sent;
  std::memcpy(&sent, transfer.headers[peer].const_data_ptr(), sizeof sent);
  if (sent == header_of(transfer.number, transfer.expected[peer])) return;
  sent.extents[sizeof sent.extents - 1] = 0;
  liveness_->fail({ErrorKind::kInternal,
                   concat("group ", kAxes[place_.axis], ", exchange ", transfer.number, ": rank ",
                          place_.members[peer], " sends ", sent.extents, " to rank ", liveness_->rank(),
                          ", which expects ", comm::to_string(transfer.expected[peer]))});
  throw Aborted();
}

/// Takes an exchange to its end: what is expected first, so that nobody waits for an empty message.
void GlooGroup::carry(Transfer& transfer) {
  const size_t size = place_.members.size();
  std::vector<size_t> full, empty;
  for (size_t i = 1; i < size; ++i) {
    const size_t peer = (self() + size - i) % size;
    (transfer.expected[peer].empty() ? empty : full).push_back(peer);
  }
  for (const size_t peer : full) {
    check(transfer, peer);
    transfer.parts[peer] = at::empty({packed_bytes(transfer.expected[peer])}, at::kByte);
    if (transfer.parts[peer].numel() == 0) continue;
    try {
      transfer.part_works[peer] = receive(peer, transfer.parts[peer], transfer.number, 1);
    } catch (const std::exception& e) {
      finish(peer, {}, reason_of(e));
    }
  }
  for (const size_t peer : full)
    if (transfer.part_works[peer]) finish(peer, std::move(transfer.part_works[peer]));
  std::vector<Message> messages(size);
  for (const size_t peer : full) messages[peer] = unpack(transfer.parts[peer], transfer.expected[peer]);
  liveness_->change([&] {
    for (const size_t peer : full) transfer.messages[peer] = std::move(messages[peer]);
    transfer.arrived = true;
  });
  for (const size_t peer : empty) check(transfer, peer);
  for (auto& [peer, work] : transfer.sends) finish(peer, std::move(work));
}

void GlooGroup::progress() {
  try {
    while (true) {
      std::shared_ptr<Transfer> next;
      {
        std::unique_lock lock(mutex_);
        queued_.wait(lock, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) break;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      carry(*next);
    }
  } catch (const Aborted&) {
  } catch (const std::exception& e) {
    liveness_->fail({ErrorKind::kInternal,
                     concat("group ", kAxes[place_.axis], " of rank ", liveness_->rank(), ": ", e.what())});
  }
  liveness_->change([&] { ended_ = true; });
}

/// Exchanges that were entered are carried to their end, because the others wait for this rank's part in
/// them, unless the run fails.
GlooGroup::~GlooGroup() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    queued_.notify_one();
  }
  try {
    liveness_->wait(place_.axis, last_, [&] { return ended_; });
  } catch (const Error&) {
    const std::lock_guard lock(mutex_);
    aborting_ = true;
    if (waits_for_) waits_for_->abort();
  }
}

}  // namespace

std::shared_ptr<GlooDevice> make_gloo_device(const std::string& address) {
  try {
    return std::make_shared<GlooDevice>(GlooDevice{ProcessGroupGloo::createDeviceForHostname(address)});
  } catch (const std::exception& e) {
    orrery::fail(ErrorKind::kResource, "cannot listen at ", address, ": ", reason_of(e));
  }
}

std::unique_ptr<Group> make_gloo_group(const GlooPlace& place, Store& store,
                                       std::shared_ptr<GlooDevice> device,
                                       std::shared_ptr<Liveness> liveness) {
  const auto& c10d_store = store.state().store;
  const auto at = std::ranges::find(place.members, liveness->rank());
  const int rank = static_cast<int>(at - place.members.begin()),
            size = static_cast<int>(place.members.size());
  ensure(size > 1 && rank < size, "group ", kAxes[place.axis], ": rank ", liveness->rank(),
         " is no member of it");
  try {
    const auto options = ProcessGroupGloo::Options::create(c10d_store->getTimeout());
    options->devices = {device->device};
    options->threads = 1;
    const auto prefix = concat(place.run, "/", kAxes[place.axis], "/", place.members[0]);
    auto gloo = c10::make_intrusive<ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>(prefix, c10d_store), rank, size, options);
    return std::make_unique<GlooGroup>(place, rank, std::move(gloo), std::move(liveness));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    orrery::fail(ErrorKind::kPeer, "the ranks of group ", kAxes[place.axis], " (", size,
                 ") do not find each other: ", reason_of(e));
  }
}

}  // namespace orrery::comm
