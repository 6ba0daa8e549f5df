#include "orrery/sample/chunk_plan.h"

#include <gmock/gmock.h>

#include "tests/support/expect_error.h"

namespace orrery::sample {
namespace {

using orrery::testing::expect_error;
using ::testing::ElementsAre;

size_t chunks(int64_t frames, int64_t conditional = 1) {
  return chunk_plan(frames, kChunkFrames, conditional).chunks.size();
}

TEST(ChunkPlan, Counts) {
  // Spec cosmos-transfer2.5 §4.1 and the reference's own test (§9.3).
  EXPECT_EQ(chunks(50), 1u);
  EXPECT_EQ(chunks(93), 1u);
  EXPECT_EQ(chunks(94), 2u);
  EXPECT_EQ(chunks(121), 2u);
  EXPECT_EQ(chunks(185), 2u);
  EXPECT_EQ(chunks(186), 3u);
  EXPECT_EQ(chunks(200), 3u);
  EXPECT_EQ(chunks(186, 0), 2u);
  EXPECT_EQ(chunks(187, 0), 3u);
  EXPECT_EQ(chunks(184, 2), 2u);
  EXPECT_EQ(chunks(185, 2), 3u);
}

TEST(ChunkPlan, RangesAndConditions) {
  EXPECT_THAT(chunk_plan(200, 93, 1).chunks,
              ElementsAre(ClipChunk{0, 93, 0, 0}, ClipChunk{92, 185, 1, 1}, ClipChunk{184, 200, 1, 1}));
  EXPECT_THAT(chunk_plan(200, 93, 0).chunks,
              ElementsAre(ClipChunk{0, 93, 0, 0}, ClipChunk{93, 186, 0, 0}, ClipChunk{186, 200, 0, 0}));
  // Two frames overlap; one latent frame, the first of them, is given.
  EXPECT_THAT(chunk_plan(100, 93, 2).chunks, ElementsAre(ClipChunk{0, 93, 0, 0}, ClipChunk{91, 100, 2, 1}));
  EXPECT_EQ(chunk_plan(200, 93, 1).latent_frames(), 24);
}

TEST(ChunkPlan, OneFrame) {
  EXPECT_THAT(chunk_plan(1, 1, 1).chunks, ElementsAre(ClipChunk{0, 1, 0, 0}));
  EXPECT_THAT(chunk_plan(7, 1, 1).chunks, ElementsAre(ClipChunk{0, 1, 0, 0}));
  EXPECT_EQ(chunk_plan(1, 1, 1).latent_frames(), 1);
  EXPECT_THAT(chunk_plan(1, 93, 1).chunks, ElementsAre(ClipChunk{0, 1, 0, 0}));
}

TEST(ChunkPlan, WhatIsKeptIsTheInput) {
  for (const int64_t length : {5, 9, 93})
    for (const int64_t conditional : {0, 1, 2})
      for (int64_t frames = 1; frames <= 300; ++frames) {
        const ChunkPlan plan = chunk_plan(frames, length, conditional);
        // The definition (§4.1): 1, or 1 + ⌈(N − L) / S⌉.
        const int64_t stride = length - conditional, more = std::max<int64_t>(frames - length, 0);
        ASSERT_EQ(static_cast<int64_t>(plan.chunks.size()), 1 + (more + stride - 1) / stride);
        int64_t next = 0;
        for (const ClipChunk& c : plan.chunks) {
          ASSERT_EQ(c.begin + c.overlap, next);
          ASSERT_LT(c.begin + c.overlap, c.end);
          ASSERT_LE(c.end - c.begin, length);
          next = c.end;
        }
        ASSERT_EQ(next, frames);
      }
}

TEST(ChunkPlan, ShortChunksAreMirrored) {
  const auto padded = [](int64_t count, int64_t length, ChunkPadding padding = ChunkPadding::kMirror) {
    return chunk_indices(chunk_plan(count, length, 1), 0, count, "the input", padding);
  };
  EXPECT_THAT(padded(3, 9), ElementsAre(0, 1, 2, 2, 1, 1, 2, 2, 1));
  EXPECT_THAT(padded(1, 5), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(padded(2, 9), ElementsAre(0, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(padded(4, 5), ElementsAre(0, 1, 2, 3, 3));
  EXPECT_THAT(padded(5, 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(padded(3, 5, ChunkPadding::kRepeatLast), ElementsAre(0, 1, 2, 2, 2));
  EXPECT_THAT(padded(7, 1), ElementsAre(0));
}

TEST(ChunkPlan, StreamsOfOtherLengths) {
  const ChunkPlan plan = chunk_plan(11, 5, 1);  // chunks from 0, 4 and 8
  EXPECT_THAT(chunk_indices(plan, 1, 11, "edge"), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(chunk_indices(plan, 2, 11, "edge"), ElementsAre(8, 9, 10, 10, 9));
  EXPECT_THAT(chunk_indices(plan, 2, 99, "edge"), ElementsAre(8, 9, 10, 10, 9));  // as long as the input
  EXPECT_THAT(chunk_indices(plan, 2, 9, "edge"), ElementsAre(8, 8, 8, 8, 8));
  // A short input is padded before it is cut, so its control is read up to a whole chunk.
  EXPECT_THAT(chunk_indices(chunk_plan(2, 5, 1), 0, 4, "edge"), ElementsAre(0, 1, 2, 3, 3));
  expect_error(
      ErrorKind::kRequest,
      "the control edge has 8 frames, and chunk 3 of 3 begins with frame 8; expected more than 8 for an "
      "input of 11 frames",
      [&] { chunk_indices(plan, 2, 8, "the control edge"); });
  expect_error(ErrorKind::kRequest, "the mask has 0 frames, and chunk 1 of 3",
               [&] { chunk_indices(plan, 0, 0, "the mask"); });
  expect_error(ErrorKind::kInternal, "expected a chunk below 3, got 3",
               [&] { chunk_indices(plan, 3, 11, "edge"); });
}

TEST(ChunkPlan, UsedFrames) {
  EXPECT_EQ(used_frames(200), 200);
  EXPECT_EQ(used_frames(200, 50), 50);
  EXPECT_EQ(used_frames(200, 300), 200);
  EXPECT_EQ(used_frames(6000), 5000);
  EXPECT_EQ(used_frames(7000, 6000), 5000);
  expect_error(ErrorKind::kRequest, "expected an input with frames, got 0", [] { used_frames(0); });
  expect_error(ErrorKind::kRequest, "a limit of at least 0 frames, got -1", [] { used_frames(5, -1); });
}

TEST(ChunkPlan, Refusals) {
  expect_error(ErrorKind::kRequest, "expected an input with frames, got 0", [] { chunk_plan(0, 93, 1); });
  for (const int64_t length : {0, -3, 2, 92, 94})
    expect_error(ErrorKind::kRequest,
                 concat("expected chunks of 4k + 1 frames (the model is trained on 93), got ", length),
                 [&] { chunk_plan(100, length, 1); });
  for (const int64_t conditional : {-1, 3})
    expect_error(ErrorKind::kRequest, concat("expected 0, 1 or 2 conditional frames, got ", conditional),
                 [&] { chunk_plan(100, 93, conditional); });
}

}  // namespace
}  // namespace orrery::sample
