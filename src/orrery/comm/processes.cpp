#include "orrery/comm/processes.h"

#include <unistd.h>

#include <sstream>
#include <thread>
#include <utility>

#include "orrery/base/clock.h"
#include "orrery/base/text.h"
#include "orrery/comm/address.h"
#include "orrery/comm/c10d_group.h"
#include "orrery/comm/solo.h"

namespace orrery::comm {

/// The liveness, whose end waits for the others, ends before the store that it serves.
struct Processes::State {
  explicit State(Place p) : place(std::move(p)) {}
  const Place place;
  std::unique_ptr<Store> store;  // null in a run of one process, as are the others
  std::shared_ptr<GlooDevice> device;
  std::shared_ptr<Liveness> liveness;
  bool has_mesh = false;
};

Processes::Processes(std::unique_ptr<State> state) : state_(std::move(state)) {}
Processes::~Processes() = default;

int Processes::rank() const { return state_->place.rank; }
int Processes::size() const { return state_->place.size; }

std::string Processes::fail(int, std::string_view reason) {
  return state_->liveness ? state_->liveness->fail(reason) : std::string(reason);
}

void Processes::finish(int) {
  if (state_->liveness) state_->liveness->finish();
}

std::optional<std::string> Processes::failure() const {
  return state_->liveness ? state_->liveness->failure() : std::nullopt;
}

namespace {

/// What a process says about itself when it joins.
struct Card {
  ProcessId process;
  std::string address;  // at which the others may reach it
};

std::string to_string(const Card& card) {
  return concat(card.process.host, ' ', card.process.pid, ' ', card.process.start, ' ', card.address);
}

Card parse_card(const std::string& text) {
  Card card;
  std::istringstream in(text);
  in >> card.process.host >> card.process.pid >> card.process.start >> card.address;
  ensure(static_cast<bool>(in), "no process of a run: '", text, "'");
  return card;
}

void check(const Place& place) {
  require(place.size >= 1 && place.rank >= 0 && place.rank < place.size, "rank ", place.rank, " of ",
          place.size, " is none: expected 0 to ", place.size - 1);
  require(place.local_size >= 1 && place.local_size <= place.size && place.local_rank >= 0 &&
              place.local_rank < place.local_size,
          "local rank ", place.local_rank, " of ", place.local_size, " is none in a run of ", place.size);
  require(place.size == 1 || (place.port > 0 && place.port <= 65535),
          "processes need a port from 1 to 65535 at which they meet, got ", place.port);
}

std::string card_key(const std::string& run, int rank) { return concat(run, "/process/", rank); }

/// Takes this rank's place in the run, and refuses one that belongs to another run.
void announce(const Place& place, Store& store, const Card& card) {
  const std::string where = concat("the store at ", place.address, ":", place.port);
  const std::string size = std::to_string(place.size);
  const std::string said = store.set_first(concat(place.run, "/size"), size);
  if (said != size)
    fail(ErrorKind::kResource, where, " belongs to a run of ", said, " processes, this one is of ", size);
  store.set(status_key(place.run, place.rank), to_string(Status{}));
  if (store.set_first(card_key(place.run, place.rank), to_string(card)) != to_string(card))
    fail(ErrorKind::kResource, where, " is used by another run, which has a rank ", place.rank, " already");
}

/// Everybody's cards; waits for those who are not here yet.
std::vector<Card> meet(const Place& place, Store& store, std::chrono::milliseconds at_most) {
  std::vector<std::string> keys, missing;
  for (int r = 0; r < place.size; ++r) keys.push_back(card_key(place.run, r));
  const Stopwatch watch;
  do {
    missing.clear();
    for (int r = 0; r < place.size; ++r)
      if (!store.has(keys[static_cast<size_t>(r)])) missing.push_back(std::to_string(r));
    if (missing.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  } while (watch.seconds() < std::chrono::duration<double>(at_most).count());
  if (!missing.empty())
    fail(ErrorKind::kPeer, "after ", human_seconds(watch.seconds()), " these ranks of ", place.size,
         " have not come to ", place.address, ":", place.port, ": ", orrery::join(missing));
  std::vector<Card> cards;
  for (const auto& text : store.get(keys)) cards.push_back(parse_card(text));
  return cards;
}

/// The address at which the others reach this process. What leads to the store is right unless the store is
/// on this host; then the way to a process elsewhere says it.
std::string own_address(const Place& place, const std::vector<Card>& cards) {
  const Card& own = cards[static_cast<size_t>(place.rank)];
  if (!is_loopback(own.address)) return own.address;
  for (const Card& card : cards)
    if (card.process.host != own.process.host && !is_loopback(card.address))
      return address_towards(card.address);
  return own.address;
}

}  // namespace

std::shared_ptr<Processes> join(const Place& place, Watch watch) {
  check(place);
  auto state = std::make_unique<Processes::State>(place);
  if (place.size == 1) return std::make_shared<Processes>(std::move(state));
  const bool serves = place.rank == 0 && !place.store_elsewhere;
  state->store =
      serves ? Store::serve(place.port, watch.join) : Store::connect(place.address, place.port, watch.join);
  announce(place, *state->store, {process_id(::getpid()), address_towards(place.address)});
  const auto cards = meet(place, *state->store, watch.join);
  state->device = make_gloo_device(own_address(place, cards));
  auto beats = Store::connect(place.address, place.port, watch.lost);
  Liveness::Setting setting{.run = place.run,
                            .rank = place.rank,
                            .processes = {},
                            .store_owner = place.store_elsewhere ? "the launcher" : "rank 0",
                            .serves_store = serves,
                            .watch = std::move(watch)};
  for (const Card& card : cards) setting.processes.push_back(card.process);
  state->liveness = std::make_shared<Liveness>(std::move(setting), std::move(beats));
  return std::make_shared<Processes>(std::move(state));
}

Mesh make_process_mesh(std::shared_ptr<Processes> processes, const MeshShape& shape,
                       const Decorate& decorate) {
  validate(shape);
  auto& [place, store, device, liveness, has_mesh] = processes->state();
  require(shape.size() == place.size, "a mesh of ", to_string(shape), " needs ", shape.size(),
          " processes, there are ", place.size);
  ensure(!std::exchange(has_mesh, true), "a run of processes has one mesh");
  if (liveness) liveness->set_shape(shape);
  Mesh::Groups groups;
  for (size_t axis = 0; axis < kAxes.size(); ++axis) {
    const auto of_axis = members(shape, axis, place.rank);
    std::unique_ptr<Group> group;
    if (of_axis.size() == 1)
      group = std::make_unique<Solo>();
    else
      group = make_gloo_group({axis, of_axis, place.run}, *store, device, liveness);
    groups[axis] = decorate ? decorate(place.rank, kAxes[axis], std::move(group)) : std::move(group);
  }
  return Mesh(shape, place.rank, std::move(groups), std::move(processes));
}

StoreServer::StoreServer(std::string run)
    : run_(std::move(run)), store_(Store::serve(0, std::chrono::seconds(10))) {}
StoreServer::~StoreServer() = default;

int StoreServer::port() const { return store_->port(); }

std::optional<std::string> StoreServer::last_operation(int rank) const {
  const std::string key = status_key(run_, rank);
  if (!store_->has(key)) return std::nullopt;
  return operation(parse_status(store_->get({key})[0]));
}

}  // namespace orrery::comm
