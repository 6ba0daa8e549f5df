// The Wan VAE shared by rows has the bits of one rank, whatever divides or does not.
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/base/error.h"
#include "orrery/comm/recording.h"
#include "orrery/comm/run_ranks.h"
#include "tests/support/wan_vae.h"

namespace orrery {
namespace {

using namespace testing;

wan_vae::Config small() {
  wan_vae::Config c;
  c.base_dim = 16, c.z_dim = 4, c.res_blocks = 1;
  c.latents_mean = {0, 0, 0, 0}, c.latents_std = {1, 1, 1, 1};
  return c;
}

constexpr int64_t kColumns = 3;  // of latents

class WanVaeRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const c10::InferenceMode guard;
    weights_ = new wan_vae::Weights(random_vae(small()));
  }
  static void TearDownTestSuite() { delete weights_; }

  static void on_ranks(int ranks, const std::function<void(comm::Group&)>& fn,
                       const comm::Decorate& decorate = {}) {
    const auto meshes = comm::make_thread_meshes({.ulysses = ranks}, decorate);
    comm::run_ranks(meshes, 1, [&](const comm::Mesh& mesh) { fn(mesh.ulysses()); });
  }

  /// Decodes and encodes on one rank and on each number of them.
  void compare(std::initializer_list<int> counts, int64_t frames, int64_t rows,
               const wan_vae::Options& options) const {
    const Tensor latents = at::randn({4, frames, rows, kColumns});
    const Tensor pixels = at::rand({3, config_.frames(frames), 8 * rows, 8 * kColumns}) * 2 - 1;
    const Tensor clip = decode(*weights_, config_, latents, options);
    const Tensor mean = encode(*weights_, config_, pixels, options);
    for (const int ranks : counts)
      on_ranks(ranks, [&](comm::Group& group) {
        wan_vae::Options shared = options;
        shared.group = &group;
        const auto where = [&] {
          return concat("rank ", group.rank(), " of ", ranks, ", ", frames, " frames of ", rows, " rows");
        };
        const Tensor part = decode(*weights_, config_, latents, shared);
        EXPECT_EQ(part.defined(), group.rank() == 0) << where();
        if (part.defined()) {
          EXPECT_TRUE(at::equal(part, clip)) << where();
        }
        EXPECT_TRUE(at::equal(encode(*weights_, config_, pixels, shared), mean)) << where();
      });
  }

  static inline wan_vae::Weights* weights_ = nullptr;
  const wan_vae::Config config_ = small();
  const c10::InferenceMode guard_;
};

TEST_F(WanVaeRanks, AnyNumberOfThemGivesTheBitsOfOne) {
  for (const int64_t rows : {1, 2, 5, 8}) compare({2, 3, 4, 5, 8}, /*frames=*/2, rows, {});
}

TEST_F(WanVaeRanks, OneFrameAndSeveralChunks) {
  compare({2, 3}, 1, 3, {});
  compare({2, 3}, 6, 3, {.chunk = 1});
  compare({2, 3}, 6, 3, {.chunk = 2});
}

TEST_F(WanVaeRanks, Tiles) {
  const wan_vae::Tiling tiling{.rows = 32, .columns = 16, .row_stride = 24, .column_stride = 16};
  compare({2, 5}, 2, 7, {.tiling = tiling});
}

/// Bytes that a rank of an encoder or decoder sends over an inner edge for one chunk, in rows of an input.
struct Edges {
  int64_t up = 0, down = 0;
  void around(int64_t frames, int64_t columns, int64_t channels, int64_t times = 1) {
    up += times * frames * (columns + 2) * channels * 4;
    down += times * frames * (columns + 2) * channels * 4;
  }
};

TEST_F(WanVaeRanks, DecodingSendsOneRowOfEachInputAndKeysAndValues) {
  const int ranks = 3;
  const int64_t rows = 5;
  const Tensor latents = at::randn({4, 2, rows, kColumns});
  comm::Recorder recorder;
  on_ranks(
      ranks, [&](comm::Group& group) { decode(*weights_, config_, latents, {.group = &group}); },
      recorder.decorate());

  // Widths of the four levels, 64 at the latents' resolution; 2 residual blocks of 2 convolutions in each.
  const int64_t dims[] = {64, 64, 32, 16}, inputs[] = {64, 32, 32, 16};
  Edges edges;
  for (const bool first : {true, false}) {
    int64_t frames = 1, columns = kColumns;
    edges.around(frames, columns, 4);      // conv_in
    edges.around(frames, columns, 64, 4);  // mid block
    for (int level = 0; level < 4; ++level) {
      edges.around(frames, columns, inputs[level]);
      edges.around(frames, columns, dims[level], 3);
      if (level == 3) break;
      if (!first && level < 2) frames *= 2;
      edges.around(frames, columns, dims[level]);  // before the ×2 upsample
      columns *= 2;
    }
    edges.around(frames, columns, 16);  // conv_out
  }
  const auto own = [&](int rank) { return comm::split(rows, ranks, rank).size(); };
  for (int rank = 0; rank < ranks; ++rank)
    for (int peer = 0; peer < ranks; ++peer) {
      int64_t bytes = 2 * own(rank) * kColumns * 2 * 64 * 4;                 // keys and values, 2 chunks
      if (peer == 0) bytes += 3 * 5 * (8 * own(rank)) * (8 * kColumns) * 4;  // 5 frames
      if (peer == rank - 1) bytes += edges.up;
      if (peer == rank + 1) bytes += edges.down;
      EXPECT_EQ(recorder.at(rank, "ulysses").bytes[static_cast<size_t>(peer)], bytes)
          << rank << " to " << peer;
    }
}

TEST_F(WanVaeRanks, WhatAllThrowBetweenChunksEndsAllOfThem) {
  const Tensor latents = at::randn({4, 4, 2, kColumns}), pixels = at::rand({3, 13, 16, 8 * kColumns});
  on_ranks(3, [&](comm::Group& group) {
    int64_t chunks = 0, received = 0;
    const auto stop = [&] {
      if (++chunks == 2) fail(ErrorKind::kCancelled, "enough");
    };
    const wan_vae::Options options{.chunk = 1, .group = &group, .between = stop};
    EXPECT_THROW(decode(
                     *weights_, config_, latents, [&](const Tensor& f) { received += f.size(1); }, options),
                 Error);
    EXPECT_EQ(received, group.rank() == 0 ? 5 : 0);
    chunks = 0;
    EXPECT_THROW(encode(*weights_, config_, pixels, options), Error);
    EXPECT_EQ(chunks, 2);
  });
}

}  // namespace
}  // namespace orrery
