#include "orrery/comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/comm/run_ranks.h"
#include "orrery/comm/solo.h"

namespace orrery::comm {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// What each of `size` ranks throws, with its kind; "" for nothing. Afterwards all ranks can go on.
std::vector<std::string> outcomes(int size, const std::function<void(const Mesh&)>& fn) {
  std::vector<std::string> said(static_cast<size_t>(size));
  run_ranks(make_thread_meshes({1, 1, size}), 1, [&](const Mesh& mesh) {
    try {
      fn(mesh);
    } catch (const AgreedError& e) {
      said[static_cast<size_t>(mesh.rank())] = concat(to_string(e.kind()), ": ", e.message());
    }
    compare(mesh.control(), "afterwards", 1);
  });
  return said;
}

TEST(Compare, NamesTheRanksThatDiffer) {
  EXPECT_THAT(outcomes(4, [](const Mesh& mesh) { compare(mesh.control(), "plan", mesh.rank() < 9); }),
              Each(""));
  EXPECT_THAT(
      outcomes(4, [](const Mesh& mesh) { compare(mesh.control(), "plan", uint64_t(mesh.rank() == 2)); }),
      Each("request: the ranks of a run must have the same plan: rank 2 differs from rank 0"));
  EXPECT_THAT(outcomes(3, [](const Mesh& mesh) { compare(mesh.control(), "plan", mesh.rank() ? "b" : "a"); }),
              Each("request: the ranks of a run must have the same plan: ranks 1, 2 differ from rank 0"));
}

TEST(Together, EndsAllRanksWithTheErrorOfTheLowest) {
  EXPECT_THAT(outcomes(3, [](const Mesh& mesh) { together(mesh.control(), [] {}); }), Each(""));
  const auto said = outcomes(4, [](const Mesh& mesh) {
    together(mesh.control(), [&] {
      if (mesh.rank() == 2) fail(ErrorKind::kResource, "disk full");
      if (mesh.rank() == 3) fail(ErrorKind::kRequest, "no prompt");
    });
  });
  EXPECT_THAT(said, ElementsAre("resource: rank 2: disk full", "resource: rank 2: disk full",
                                "resource: disk full", "resource: rank 2: disk full"));
}

TEST(Together, OfOneRankThrowsWhatFnThrows) {
  Solo solo;
  int calls = 0;
  together(solo, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(together(solo, [] { fail(ErrorKind::kPeer, "x"); }), Error);
}

}  // namespace
}  // namespace orrery::comm
