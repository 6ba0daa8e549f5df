#pragma once
// What ranks play in the tests of processes.
#include <ATen/ops/full.h>

#include <cstdio>
#include <cstdlib>

#include "orrery/comm/agreement.h"
#include "orrery/comm/faulty.h"
#include "orrery/comm/run_ranks.h"
#include "tests/comm/random_exchanges.h"
#include "tests/comm/rank_process.h"

namespace orrery::comm::testing {

inline void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// Random exchanges, compared with what thread ranks receive. CFG RING ULYSSES SEED RUNS DELAY_US
inline void play_exchanges(const Role& role) {
  const MeshShape shape{role.number(0), role.number(1), role.number(2)};
  const int delay = role.number(5), rounds = 12;
  const auto delayed = [&](int rank, std::string_view axis, std::unique_ptr<Group> group) {
    if (delay == 0) return group;
    const auto seed = static_cast<uint64_t>(role.number(3)) + static_cast<uint64_t>(rank) * 7 + axis.size();
    return std::unique_ptr<Group>(
        std::make_unique<Delayed>(std::move(group), seed, std::chrono::microseconds(delay)));
  };
  const Mesh mesh = make_process_mesh(join(role.place), shape, delayed);
  for (int i = 0; i < role.number(4); ++i) {
    const auto seed = static_cast<uint64_t>(role.number(3) + i);
    std::vector<Tensor> expected, got;
    run_ranks(make_thread_meshes(shape), 1, [&](const Mesh& threads) {
      auto received = random_exchanges(threads, seed, rounds);
      if (threads.rank() == role.place.rank) expected = std::move(received);
    });
    run_ranks({&mesh, 1}, 1, [&](const Mesh& processes) { got = random_exchanges(processes, seed, rounds); });
    ensure(!expected.empty() && same_bits(got, expected), "run ", i, ": other bits than thread ranks");
  }
  say("same bits");
}

/// Small gathers without end, until the rank VICTIM meets its FAULT before exchange AT. The rank BUSY (−1:
/// none) enters a long kernel instead of exchange 5. FAULT VICTIM AT BUSY
inline void play_fault(const Role& role) {
  const std::string& fault = role.arguments.at(0);
  const int victim = role.number(1), busy = role.number(3);
  const bool is_busy = role.place.rank == busy;
  Watch watch;
  watch.on_loss = [is_busy](const std::string& message) {
    say("loss: " + message);
    if (is_busy) std::_Exit(6);
  };
  const auto meet_it = [&] {
    if (fault == "kill") ::kill(::getpid(), SIGKILL);
    if (fault == "stop") ::kill(::getpid(), SIGSTOP);
    if (fault == "exit") std::_Exit(0);
    if (fault == "throw") orrery::fail(ErrorKind::kResource, "out of memory");
  };
  const Mesh mesh = make_process_mesh(
      join(role.place, watch), {1, 1, role.place.size},
      [&](int rank, std::string_view axis, std::unique_ptr<Group> group) -> std::unique_ptr<Group> {
        if (rank != victim || axis != "world") return group;
        return std::make_unique<Faulty>(std::move(group), role.number(2), meet_it);
      });
  run_ranks({&mesh, 1}, 1, [&](const Mesh& ranks) {
    const std::vector<int64_t> sizes(static_cast<size_t>(ranks.size()), 1);
    for (int i = 1; i < 100'000; ++i) {
      if (is_busy && i == 5) std::this_thread::sleep_for(std::chrono::minutes(5));
      all_gather(ranks.world(), at::full({1, 1000}, i, at::kFloat), 0, sizes);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
}

/// Ranks that disagree in the way WAY.
inline void play_disagreement(const Role& role) {
  const std::string& way = role.arguments.at(0);
  const bool odd = role.place.rank == 1;
  const Mesh mesh = make_process_mesh(join(role.place), {1, 1, role.place.size});
  run_ranks({&mesh, 1}, 1, [&](const Mesh& ranks) {
    const std::vector<int64_t> sizes(static_cast<size_t>(ranks.size()), 1);
    const auto gather = [&](Group& group, int64_t rows, at::ScalarType type) {
      all_gather(group, at::full({rows, 2}, 1, type), 0,
                 std::vector<int64_t>(static_cast<size_t>(ranks.size()), rows));
    };
    if (way == "extents") gather(ranks.world(), odd ? 4000 : 3, at::kFloat);
    if (way == "type") gather(ranks.world(), 3, odd ? at::kInt : at::kFloat);
    if (way == "order") gather(odd ? ranks.sequence() : ranks.world(), 3, at::kFloat);
    if (way == "end" && !odd) gather(ranks.world(), 3, at::kFloat);
    if (way == "request") compare(ranks.control(), "request", odd ? "a red square" : "a blue square");
    if (way == "same") compare(ranks.control(), "request", "a blue square");
    if (way == "error")
      together(ranks.control(), [&] {
        if (role.place.rank >= 1) orrery::fail(ErrorKind::kCheckpoint, "no file ", role.place.rank);
      });
  });
}

/// Rank 1 lives, but does not go on; the others wait for it for no more than two seconds.
inline void play_idle(const Role& role) {
  Watch watch;
  watch.no_progress = std::chrono::seconds(2);
  watch.on_loss = [](const std::string& message) {
    say("loss: " + message);
    std::_Exit(6);
  };
  const Mesh mesh = make_process_mesh(join(role.place, watch), {1, 1, role.place.size});
  if (role.place.rank == 1) std::this_thread::sleep_for(std::chrono::minutes(5));
  agree(mesh.control(), 0);
  all_gather(mesh.world(), at::full({1}, 1, at::kFloat), 0, std::vector<int64_t>(2, 1));
}

/// Rank 1 stops before the last exchange, in which rank 0 only sends: it finishes and leaves meanwhile.
inline void play_late_stop(const Role& role) {
  const Mesh mesh = make_process_mesh(join(role.place), {1, 1, 2});
  run_ranks({&mesh, 1}, 1, [](const Mesh& ranks) {
    if (ranks.rank() == 1) ::kill(::getpid(), SIGSTOP);
    gather_to(ranks.world(), 1, at::full({1}, 1, at::kFloat), 0, std::vector<int64_t>(2, 1));
  });
  say("finished");
}

inline int main(int argc, char** argv) {
  return play(parse_role(argc, argv), {{"exchanges", play_exchanges},
                                       {"fault", play_fault},
                                       {"disagreement", play_disagreement},
                                       {"idle", play_idle},
                                       {"late stop", play_late_stop},
                                       {"join", [](const Role& role) { join(role.place)->finish(0); }}});
}

}  // namespace orrery::comm::testing
