#include "orrery/models/qwen_vl/vision_model.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/models/qwen_vl_hash.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::qwen_vl {
namespace {

using testing::expect_error;
using Json = nlohmann::json;
using Longs = std::vector<int64_t>;

VisionConfig tiny_config() {
  return {.depth = 2,
          .hidden_size = 32,
          .intermediate_size = 24,
          .heads = 2,
          .out_hidden_size = 32,
          .full_attention_blocks = {1}};
}

VisionWeights tiny_weights() {
  VisionWeights weights;
  HashFill fill("visual.");
  bind(fill, weights, tiny_config());
  return weights;
}

ImagePatches printed_patches(Grid grid) {
  const Tensor all = hashed("input.pixel_values", {240, 1176}, std::sqrt(3.0));
  return {all.slice(0, 0, grid.count()), grid};
}

/// Spec qwen2.5-vl-text Part D, "Vision".
TEST(QwenVlVision, PrintedNumbers) {
  const auto weights = tiny_weights();
  const EncodedImage large = run_vision(weights, tiny_config(), printed_patches({12, 20}), at::kFloat);
  EXPECT_EQ(large.grid, (Grid{6, 10}));
  ASSERT_EQ(large.rows.sizes(), at::IntArrayRef({60, 32}));
  expect_printed(large.rows,
                 {48.967342,
                  30.107325,
                  {-0.147931f, 1.105618f, 0.425360f, 0.055808f, 0.506362f, -0.352428f, -1.125440f, 1.031641f},
                  {-0.323524f, 0.190836f, -0.245266f, 0.517700f}});
  expect_printed(run_vision(weights, tiny_config(), printed_patches({8, 8}), at::kFloat).rows,
                 {40.619745,
                  15.373078,
                  {-0.251741f, 0.954884f, 0.279433f, -0.133322f},
                  {0.629395f, 0.319722f, 0.773273f, -0.152833f}});
}

/// Spec §7.2, "Window example".
TEST(QwenVlVision, WindowsOfTheSpecification) {
  const Windows windows = windows_of(tiny_config(), {6, 10});
  const Longs order = longs(windows.order);
  const Longs first = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 4, 5, 6, 7, 14};
  ASSERT_EQ(order.size(), 60u);
  EXPECT_EQ(Longs(order.begin(), order.begin() + 21), first);
  EXPECT_EQ(Longs(order.begin() + 32, order.begin() + 43), (Longs{8, 9, 18, 19, 28, 29, 38, 39, 40, 41, 42}));
  EXPECT_EQ(windows.lengths, (Longs{64, 64, 32, 32, 32, 16}));  // bounds 0 64 128 160 192 224 240

  const Windows one = windows_of(tiny_config(), {4, 4});
  Longs identity(16);
  std::iota(identity.begin(), identity.end(), 0);
  EXPECT_EQ(longs(one.order), identity);
  EXPECT_EQ(one.lengths, Longs{64});
}

/// A merged patch of a tower without full attention sees its own window only, and no other picture.
TEST(QwenVlVision, WindowsDoNotSeeEachOther) {
  const auto weights = tiny_weights();
  VisionConfig config = tiny_config();
  config.full_attention_blocks.clear();
  ImagePatches patches = printed_patches({12, 20});
  const Tensor before = run_vision(weights, config, patches, at::kFloat).rows;
  patches.values = patches.values.clone();
  patches.values[4 * 45] +=
      1;  // row 4, column 5 of merged patches: the window of rows 4 … 5 and columns 4 … 7
  const Tensor moved = (run_vision(weights, config, patches, at::kFloat).rows - before).abs().amax(1) > 0;
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t column = 0; column < 10; ++column)
      EXPECT_EQ(moved[row * 10 + column].item<bool>(), row >= 4 && column >= 4 && column < 8)
          << row << ", " << column;
}

TEST(QwenVlVision, BfloatIsNear) {
  const auto weights = tiny_weights();
  const Tensor exact = run_vision(weights, tiny_config(), printed_patches({6, 4}), at::kFloat).rows;
  const Tensor coarse = run_vision(weights, tiny_config(), printed_patches({6, 4}), at::kBFloat16).rows;
  EXPECT_EQ(coarse.scalar_type(), at::kBFloat16);
  const double off = (coarse.to(at::kFloat) - exact).pow(2).mean().sqrt().item<double>();
  EXPECT_LT(off, 0.02);  // of values with deviation 0.7: a few roundings of 2⁻⁹ in each of two blocks
  EXPECT_GT(off, 0);
}

TEST(QwenVlVision, RefusesOtherPatches) {
  const auto weights = tiny_weights();
  ImagePatches patches = printed_patches({8, 8});
  patches.grid = {7, 8};
  expect_error(ErrorKind::kInternal, "expected [56, 1176]",
               [&] { run_vision(weights, tiny_config(), patches, at::kFloat); });
  patches.grid = {8, 10};
  expect_error(ErrorKind::kInternal, "got [64, 1176]",
               [&] { run_vision(weights, tiny_config(), patches, at::kFloat); });
}

class QwenVlVisionConfig : public ::testing::Test {
 protected:
  VisionConfig read(const Json& vision) {
    std::ofstream(folder_ / "config.json") << Json{{"vision_config", vision}}.dump();
    return read_vision_config(folder_ / "config.json");
  }

  testing::TempDir folder_;
  Json published_ = {{"depth", 32},
                     {"hidden_size", 1280},
                     {"num_heads", 16},
                     {"intermediate_size", 3420},
                     {"hidden_act", "silu"},
                     {"in_chans", 3},
                     {"patch_size", 14},
                     {"temporal_patch_size", 2},
                     {"spatial_merge_size", 2},
                     {"window_size", 112},
                     {"fullatt_block_indexes", {7, 15, 23, 31}},
                     {"out_hidden_size", 3584}};
};

TEST_F(QwenVlVisionConfig, PublishedAndDefaults) {
  const VisionConfig c = read(published_);
  EXPECT_EQ(c.hidden_size, 1280);
  EXPECT_EQ(c.patch_features(), 1176);
  EXPECT_EQ(c.window_groups(), 4);
  EXPECT_EQ(c.full_attention_blocks, (Longs{7, 15, 23, 31}));
  EXPECT_EQ(read({{"fullatt_block_indexes", Json::array()}}).full_attention_blocks, Longs{});
  EXPECT_EQ(read(Json::object()).hidden_size, 3584);
}

TEST_F(QwenVlVisionConfig, NamesTheFieldThatIsWrong) {
  const std::pair<const char*, Json> wrong[] = {{"depth", 0},
                                                {"depth", "32"},
                                                {"patch_size", 257},
                                                {"spatial_merge_size", -2},
                                                {"window_size", 27},
                                                {"fullatt_block_indexes", 7},
                                                {"fullatt_block_indexes", {-1}}};
  for (const auto& [name, value] : wrong) {
    Json json = published_;
    json[name] = value;
    expect_error(ErrorKind::kCheckpoint, name, [&] { read(json); });
  }
  published_["num_heads"] = 3;
  expect_error(ErrorKind::kCheckpoint, "width 1280 with 3 heads", [&] { read(published_); });
  expect_error(ErrorKind::kCheckpoint, "no vision_config", [&] { read(nullptr); });
}

TEST_F(QwenVlVisionConfig, NamesWhatIsNotSupported) {
  for (const auto& [name, value] : {std::pair<const char*, Json>{"hidden_act", "gelu"}, {"in_channels", 1}}) {
    Json json = published_;
    json[name] = value;
    expect_error(ErrorKind::kUnsupported, name, [&] { read(json); });
  }
}

}  // namespace
}  // namespace orrery::qwen_vl
