// Random delays bring ranks together in other orders; no bit may depend on it.
#include <gtest/gtest.h>

#include "orrery/comm/faulty.h"
#include "orrery/comm/run_ranks.h"
#include "tests/comm/random_exchanges.h"

namespace orrery::comm::testing {
namespace {

std::vector<std::vector<Tensor>> received(const MeshShape& shape, uint64_t seed,
                                          const Decorate& decorate = {}) {
  std::vector<std::vector<Tensor>> all(static_cast<size_t>(shape.size()));
  run_ranks(make_thread_meshes(shape, decorate), 1, [&](const Mesh& mesh) {
    all[static_cast<size_t>(mesh.rank())] = random_exchanges(mesh, seed, 12);
  });
  return all;
}

TEST(Delays, ChangeNoBitOfThreadRanks) {
  constexpr MeshShape kShapes[] = {{1, 1, 2}, {1, 3, 1}, {2, 1, 2}, {2, 2, 2}};
  for (uint64_t run = 0; run < 200; ++run) {
    const MeshShape& shape = kShapes[run % 4];
    const auto delayed = [&](int rank, std::string_view axis, std::unique_ptr<Group> group) {
      return std::unique_ptr<Group>(std::make_unique<Delayed>(
          std::move(group), run * 64 + static_cast<uint64_t>(rank) * 8 + axis.size(),
          std::chrono::microseconds(200)));
    };
    const auto expected = received(shape, run), got = received(shape, run, delayed);
    for (size_t r = 0; r < got.size(); ++r) EXPECT_TRUE(same_bits(got[r], expected[r])) << "run " << run;
  }
}

}  // namespace
}  // namespace orrery::comm::testing
