#include "orrery/comm/status.h"

#include <algorithm>
#include <sstream>

#include "orrery/base/text.h"

namespace orrery::comm {
namespace {

bool has_ended_work(const Status& status) { return status.activity >= Activity::kFinished; }

/// Does rank `self`, which waits, wait for `other` to enter the exchange?
bool awaits(const View& view, int self, int other) {
  const Status& mine = view.ranks[static_cast<size_t>(self)].status;
  if (mine.activity != Activity::kWaits || other == self) return false;
  const auto group = members(view.shape, mine.axis, self);
  return std::ranges::count(group, other) > 0 &&
         view.ranks[static_cast<size_t>(other)].status.entered[mine.axis] < mine.exchange;
}

std::string last_operation(const Peer& peer) {
  return peer.heard > peer.status.entered[peer.heard_axis] ? operation(peer.heard_axis, peer.heard)
                                                           : operation(peer.status);
}

/// Why this rank alone ends the run, or "".
std::string loss_of(const View& view, int rank) {
  const Peer& peer = view.ranks[static_cast<size_t>(rank)];
  const bool needed = !has_ended_work(peer.status) || awaits(view, view.self, rank);
  const std::string last = concat("; it was last ", last_operation(peer));
  if (peer.ended && needed) return concat("rank ", rank, " is lost: its process has ended", last);
  if (peer.status.activity == Activity::kLeft && needed)
    return concat("rank ", rank, " has left while others wait for it", last);
  if (peer.silent >= view.lost && needed)
    return concat("rank ", rank, " is lost: no sign of life for ", human_seconds(peer.silent),
                  " (its process is stopped, or its host cannot be reached)", last);
  // Time for the reason to be heard of: the end of a process, or what it says itself.
  if (!peer.suspicion.empty() && peer.suspected > 2 * view.heartbeat)
    return concat("rank ", rank, " is lost: ", peer.suspicion, last);
  return "";
}

/// Who waits where, if somebody waits and nobody can end that; else nothing. Statuses that have not changed
/// for two beats while all ranks gave signs of life hold at one common moment, so that this is never a guess.
std::optional<Failure> stuck(const View& view) {
  std::ostringstream out;
  bool somebody_waits = false;
  for (int r = 0; r < static_cast<int>(view.ranks.size()); ++r) {
    const Peer& peer = view.ranks[static_cast<size_t>(r)];
    const bool waits = peer.status.activity == Activity::kWaits;
    if ((!waits && !has_ended_work(peer.status)) || peer.unchanged < 2.5 * view.heartbeat ||
        peer.silent > 2 * view.heartbeat)
      return std::nullopt;
    bool held_up = false;
    for (int other = 0; other < static_cast<int>(view.ranks.size()); ++other)
      held_up |= awaits(view, r, other);
    if (waits && !held_up) return std::nullopt;
    somebody_waits |= waits;
    out << (r ? ", rank " : "no rank can go on: rank ") << r << (waits ? " waits " : " has finished ")
        << operation(peer.status);
  }
  if (!somebody_waits) return std::nullopt;
  return Failure{ErrorKind::kInternal, out.str()};
}

std::optional<Failure> no_progress(const View& view) {
  const Peer& own = view.ranks[static_cast<size_t>(view.self)];
  for (int r = 0; r < static_cast<int>(view.ranks.size()); ++r) {
    const Peer& peer = view.ranks[static_cast<size_t>(r)];
    if (awaits(view, view.self, r) && std::min(own.unchanged, peer.unchanged) >= view.no_progress)
      return Failure{ErrorKind::kPeer,
                     concat("rank ", r, " lives but has made no progress for ", human_seconds(peer.unchanged),
                            "; it was last ", operation(peer.status))};
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const Status& status) {
  std::ostringstream out;
  out << status.beat << ' ' << static_cast<int>(status.activity) << ' ' << status.axis << ' '
      << status.exchange;
  for (const int64_t count : status.entered) out << ' ' << count;
  out << ' ' << status.failure;
  return out.str();
}

Status parse_status(const std::string& text) {
  Status status;
  std::istringstream in(text);
  int activity = 0;
  in >> status.beat >> activity >> status.axis >> status.exchange;
  for (int64_t& count : status.entered) in >> count;
  ensure(in && activity >= 0 && activity <= static_cast<int>(Activity::kLeft) && status.axis < kAxes.size(),
         "no status of a rank: '", text, "'");
  status.activity = static_cast<Activity>(activity);
  in.get();
  std::getline(in, status.failure, '\0');
  return status;
}

std::string operation(size_t axis, int64_t exchange) {
  return exchange == 0 ? "before its first exchange"
                       : concat("at exchange ", exchange, " of group ", kAxes[axis]);
}

std::optional<Failure> judge(const View& view) {
  const int size = static_cast<int>(view.ranks.size());
  for (int r = 0; r < size; ++r)
    if (const auto& told = view.ranks[static_cast<size_t>(r)].status.failure; r != view.self && !told.empty())
      return Failure{ErrorKind::kPeer, told};
  for (int r = 0; r < size; ++r)
    if (auto loss = r == view.self ? "" : loss_of(view, r); !loss.empty())
      return Failure{ErrorKind::kPeer, std::move(loss)};
  if (const auto failure = stuck(view)) return failure;
  return no_progress(view);
}

}  // namespace orrery::comm
