// Thread ranks: hand-over, order, mismatches, failures.
#include "orrery/comm/threads.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "orrery/base/error.h"
#include "orrery/comm/collectives.h"
#include "orrery/comm/faulty.h"
#include "orrery/comm/run_ranks.h"

#if defined(__SANITIZE_THREAD__)
// libtorch is not instrumented, so that ThreadSanitizer does not see its reference counts order the last use
// of a storage before its end, nor gloo's of a buffer whose connection breaks. Everything else is reported.
extern "C" const char* __tsan_default_suppressions() {
  return "race:c10::intrusive_ptr<c10::StorageImpl*::reset_not_null_\n"
         "race:gloo::transport::tcp::UnboundBuffer::~UnboundBuffer\n"
         "race:c10d::ProcessGroupGloo::SendWork::~SendWork\n"
         "race:c10d::ProcessGroupGloo::RecvWork::~RecvWork\n";
}
#endif

namespace orrery::comm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

Tensor filled(int64_t rows, double value) { return at::full({rows, 2}, value, at::kFloat); }

/// What an error says, with its kind; "" if nothing was thrown.
std::string outcome(const std::function<void()>& fn) {
  try {
    fn();
    return "";
  } catch (const Error& e) {
    return concat(to_string(e.kind()), ": ", e.message());
  }
}

/// Runs fn on every rank of a world of `size` and returns what each rank's error says.
std::vector<std::string> outcomes(int size, const std::function<void(const Mesh&)>& fn,
                                  const Decorate& decorate = {}) {
  std::vector<std::string> said(static_cast<size_t>(size));
  const auto meshes = make_thread_meshes({1, 1, size}, decorate);
  outcome([&] {
    run_ranks(meshes, 1, [&](const Mesh& mesh) {
      try {
        fn(mesh);
      } catch (const Error& e) {
        said[static_cast<size_t>(mesh.rank())] = concat(to_string(e.kind()), ": ", e.message());
        throw;
      }
    });
  });
  return said;
}

TEST(ThreadGroup, EveryPairExchangesItsOwnMessage) {
  constexpr int kSize = 5;
  const auto meshes = make_thread_meshes({1, 1, kSize});
  run_ranks(meshes, 1, [](const Mesh& mesh) {
    const int me = mesh.rank();
    for (int round = 0; round < 20; ++round) {
      // rank a sends rank b a tensor of a + 2 b rows (none: no tensor at all), and a second one of another
      // type
      std::vector<Message> to(kSize);
      std::vector<Extents> from(kSize);
      for (int peer = 0; peer < kSize; ++peer) {
        if (me + 2 * peer > 0)
          to[peer] = {filled(me + 2 * peer, 100 * me + round), at::full({1}, peer, at::kLong)};
        if (peer + 2 * me > 0) from[peer] = {{{peer + 2 * me, 2}, at::kFloat}, {{1}, at::kLong}};
      }
      const auto got = mesh.world().exchange(std::move(to), from)->wait();
      ASSERT_EQ(got.size(), static_cast<size_t>(kSize));
      for (int peer = 0; peer < kSize; ++peer) {
        ASSERT_EQ(got[peer].size(), peer + 2 * me > 0 ? 2u : 0u);
        if (got[peer].empty()) continue;
        EXPECT_TRUE(got[peer][0].equal(filled(peer + 2 * me, 100 * peer + round)));
        EXPECT_EQ(got[peer][1].item<int64_t>(), me);
      }
    }
  });
}

TEST(ThreadGroup, HandsOverThePointer) {
  const Tensor sent[] = {filled(3, 0), filled(3, 1)};
  const auto meshes = make_thread_meshes({1, 1, 2});
  run_ranks(meshes, 1, [&](const Mesh& mesh) {
    const int me = mesh.rank(), peer = 1 - me;
    const auto got = shift(mesh.world(), {sent[me]}, {{{3, 2}, at::kFloat}}).wait();
    EXPECT_EQ(got.at(0).data_ptr(), sent[peer].data_ptr());
  });
}

TEST(ThreadGroup, NobodyWaitsForAnEmptyMessage) {
  // Rank 1 reaches the exchange only after rank 0, which expects nothing from it, has left its own wait.
  std::atomic<bool> left = false;
  const auto meshes = make_thread_meshes({1, 1, 2});
  run_ranks(meshes, 1, [&](const Mesh& mesh) {
    if (mesh.rank() == 1) left.wait(false);
    std::vector<Message> to(2);
    std::vector<Extents> from(2);
    if (mesh.rank() == 0) to[1] = {filled(1, 7)};
    if (mesh.rank() == 1) from[0] = {{{1, 2}, at::kFloat}};
    const auto got = mesh.world().exchange(std::move(to), from)->wait();
    if (mesh.rank() == 0) {
      left = true;
      left.notify_all();
    } else {
      EXPECT_TRUE(got[0].at(0).equal(filled(1, 7)));
    }
  });
}

TEST(ThreadGroup, ExchangesMayBeWaitedForLaterAndInAnyOrder) {
  const auto meshes = make_thread_meshes({1, 1, 3});
  run_ranks(meshes, 1, [](const Mesh& mesh) {
    const int me = mesh.rank(), before = (me + 2) % 3;
    const Extents extents = {{{1, 2}, at::kFloat}};
    Shift first = shift(mesh.world(), {filled(1, me)}, extents);
    Shift second = shift(mesh.world(), {filled(1, 10 + me)}, extents);
    EXPECT_TRUE(second.wait().at(0).equal(filled(1, 10 + before)));
    EXPECT_TRUE(first.wait().at(0).equal(filled(1, before)));
  });
}

TEST(ThreadGroup, MismatchedExtentsNameBothRanksAndEndEveryRank) {
  const auto said = outcomes(3, [](const Mesh& mesh) {
    // ranks 0 and 2 think that every part has 3 rows, rank 1 has 4
    const int64_t rows = mesh.rank() == 1 ? 4 : 3;
    all_gather(mesh.world(), filled(rows, 0), 0, std::vector<int64_t>(3, rows));
  });
  int internal = 0;
  for (const auto& message : said) {
    EXPECT_THAT(message,
                AllOf(HasSubstr("rank 1"), HasSubstr("[Float [4, 2]]"), HasSubstr("[Float [3, 2]]")));
    EXPECT_TRUE(message.starts_with("internal: ") || message.starts_with("peer: ")) << message;
    internal += message.starts_with("internal: ");
  }
  EXPECT_GE(internal, 1);
}

TEST(ThreadGroup, ADifferentTypeIsAMismatch) {
  const auto said = outcomes(2, [](const Mesh& mesh) {
    const Tensor part = mesh.rank() == 0 ? filled(1, 0) : filled(1, 0).to(at::kDouble);
    all_gather(mesh.world(), part, 0, std::vector<int64_t>(2, 1));
  });
  EXPECT_THAT(said[0] + said[1], AllOf(HasSubstr("[Double [1, 2]]"), HasSubstr("internal: ")));
}

TEST(ThreadGroup, AFailedRankIsNamedToAllWithItsLastOperation) {
  const auto fault = [](int rank, std::string_view axis,
                        std::unique_ptr<Group> group) -> std::unique_ptr<Group> {
    if (rank != 2 || axis != "sequence") return group;
    return std::make_unique<Faulty>(std::move(group), 3, [] { fail(ErrorKind::kResource, "out of memory"); });
  };
  const auto work = [](const Mesh& mesh) {
    for (int i = 0; i < 5; ++i) all_gather(mesh.sequence(), filled(1, i), 0, std::vector<int64_t>(4, 1));
  };
  const auto said = outcomes(4, work, fault);
  EXPECT_EQ(said[2], "resource: out of memory");
  for (int rank : {0, 1, 3})  // some may not have left their second exchange yet
    EXPECT_THAT(said[rank], MatchesRegex(concat(
                                "peer: rank 2 failed at exchange 2 of group sequence: out of memory; rank ",
                                rank, " was at exchange (2|3) of group sequence")));
  const auto meshes = make_thread_meshes({1, 1, 4}, fault);
  EXPECT_EQ(outcome([&] { run_ranks(meshes, 1, work); }),
            "resource: rank 2 failed at exchange 2 of group sequence: out of memory")
      << "the cause is what is thrown";
}

TEST(ThreadGroup, AFailureEndsTheOtherGroupsToo) {
  const auto meshes = make_thread_meshes({2, 1, 2});
  std::vector<std::string> said(4);
  outcome([&] {
    run_ranks(meshes, 1, [&](const Mesh& mesh) {
      if (mesh.rank() == 3) fail(ErrorKind::kInternal, "lost");
      // rank 0 and 1 wait for each other only, and would go on for ever
      said[mesh.rank()] = outcome([&] {
        while (true) all_gather(mesh.ulysses(), filled(1, 0), 0, std::vector<int64_t>(2, 1));
      });
    });
  });
  for (int rank : {0, 1, 2})
    EXPECT_THAT(said[rank], HasSubstr("peer: rank 3 failed before its first exchange: lost; rank")) << rank;
}

TEST(ThreadGroup, AfterAFailureNothingIsExchangedAnyMore) {
  const auto meshes = make_thread_meshes({1, 1, 2});
  const std::vector<Extents> none(2);
  auto pending = meshes[0].world().exchange(std::vector<Message>(2), none);
  meshes[1].fail("gone");
  EXPECT_THAT(outcome([&] { pending->wait(); }), HasSubstr("peer: rank 1 failed"));
  EXPECT_THAT(outcome([&] { agree(meshes[0].control(), 1); }), HasSubstr("of group control"));
  EXPECT_THAT(outcome([&] { agree(meshes[1].control(), 1); }), HasSubstr("peer: rank 1 failed"));
}

TEST(ThreadGroup, RanksThatWaitForEachOtherInDifferentOrderAreToldSo) {
  const auto said = outcomes(2, [](const Mesh& mesh) {
    const std::vector<int64_t> sizes(2, 1);
    all_gather(mesh.rank() == 0 ? mesh.world() : mesh.sequence(), filled(1, 0), 0, sizes);
  });
  EXPECT_THAT(said[0] + said[1], AllOf(HasSubstr("internal: no rank can go on"),
                                       HasSubstr("rank 0 waits at exchange 1 of group world"),
                                       HasSubstr("rank 1 waits at exchange 1 of group sequence")));
}

TEST(ThreadGroup, ARankThatEndsEarlyIsNamed) {
  const auto said = outcomes(2, [](const Mesh& mesh) {
    if (mesh.rank() == 0) all_gather(mesh.world(), filled(1, 0), 0, std::vector<int64_t>(2, 1));
  });
  EXPECT_THAT(said[0], AllOf(HasSubstr("rank 0 waits at exchange 1 of group world"),
                             HasSubstr("rank 1 has finished before its first exchange")));
}

TEST(ThreadGroup, RefusesAnotherNumberOfMessages) {
  const auto meshes = make_thread_meshes({1, 1, 2});
  const std::vector<Extents> one(1);
  EXPECT_THAT(outcome([&] { meshes[0].world().exchange(std::vector<Message>(2), one); }),
              HasSubstr("internal: group world: expected 2 messages, got 2 to send and 1 to receive"));
}

TEST(RunRanks, RanksRunAtTheSameTimeWithTheirThreadsAndTheFirstOnTheCaller) {
  const auto caller = std::this_thread::get_id();
  const int before = at::get_num_threads();
  std::atomic<int> here = 0;
  const auto meshes = make_thread_meshes({1, 1, 3});
  run_ranks(meshes, 1, [&](const Mesh& mesh) {
    EXPECT_EQ(std::this_thread::get_id() == caller, mesh.rank() == 0);
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_TRUE(c10::InferenceMode::is_enabled());
    for (++here; here < 3;) std::this_thread::yield();
  });
  EXPECT_EQ(at::get_num_threads(), before);
  EXPECT_FALSE(c10::InferenceMode::is_enabled());
}

TEST(RunRanks, AnyExceptionOfAnyRankIsToldAtOnceAndThrown) {
  const auto meshes = make_thread_meshes({1, 1, 2});
  const auto work = [](const Mesh& mesh) {
    if (mesh.rank() == 1) throw std::runtime_error("not ours");
    agree(mesh.control(), 0);
    agree(mesh.control(), 0);
    all_gather(mesh.world(), filled(1, 0), 0, std::vector<int64_t>(2, 1));
  };
  const std::string told = "rank 1 failed before its first exchange: not ours";
  std::vector<std::string> heard;
  EXPECT_EQ(
      outcome([&] { run_ranks(meshes, 1, work, [&](const Error& e) { heard.push_back(e.message()); }); }),
      "internal: " + told);
  EXPECT_EQ(heard, std::vector<std::string>{told}) << "what others suffer from it is not told";
}

}  // namespace
}  // namespace orrery::comm
