// The SigLIP2 vision tower and its picture processor against transformers and the official pipeline's steps
// (tests/golden/siglip2).
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "orrery/media/read.h"
#include "orrery/media/resize.h"
#include "orrery/models/siglip/model.h"
#include "orrery/platform/cpu.h"
#include "orrery/weights/source.h"
#include "tests/support/every_weight.h"

namespace orrery::siglip {
namespace {

namespace fs = std::filesystem;
using testing::Json;
using testing::max_abs_over_rms;

// Of case.json, "tolerance", max |difference| / rms. A resize of the picture meets exact ties of its
// rounding to bfloat16, and which way they fall is up to the order of a sum.
constexpr double kTower = 2e-5, kFromResized = 2e-2;
constexpr double kPixel = 1e-6, kLargestFlip = 0.0079, kFlips = 5e-3;

struct Golden {
  fs::path folder;
  Json description;
  std::map<std::string, Tensor> tensors;
};

/// One case, and a model with its number of patches.
struct Case {
  const Golden& golden;
  const Json& info;
  Model model;

  bool has(const std::string& name) const { return golden.tensors.contains(key(name)); }
  const Tensor& operator()(const std::string& name) const { return golden.tensors.at(key(name)); }
  std::string key(const std::string& name) const { return info["name"].get<std::string>() + "/" + name; }

  media::Frames source() const {
    const Tensor& t = (*this)("source");
    const auto* data = t.const_data_ptr<uint8_t>();
    return {1, t.size(0), t.size(1), {data, data + t.numel()}};
  }
  int64_t height() const { return info["frame_hw"][0]; }
  int64_t width() const { return info["frame_hw"][1]; }
  media::Frames frame() const {
    return media::stretch_pil(source(), height(), width(), media::Filter::kLanczos);
  }
  Grid grid() const { return {info["grid_rows_cols"][0], info["grid_rows_cols"][1]}; }
  ImagePatches patches() const { return patches_of(model.config, source(), height(), width()); }
  bool is_resized() const {
    return grid() != Grid{height() / model.config.patch, width() / model.config.patch};
  }
};

/// Calls f(case) for every style picture that has the tensor `needed`.
template <class F>
void for_each_case(const std::string& needed, const F& f,
                   weights::Storage storage = weights::Storage::kMapped,
                   at::ScalarType compute = at::kFloat) {
  int cases = 0;
  for (const fs::path& folder : testing::golden_folders("siglip2")) {
    const Golden golden{folder, testing::read_json(folder / "case.json"),
                        testing::read_tensors(folder / "golden.safetensors")};
    const Model model = open_model(folder / "image_encoder", compute, storage);
    for (const Json& info : golden.description["cases"]) {
      Case c{golden, info, model};
      if (!info.contains("frame_hw") || !c.has(needed)) continue;
      SCOPED_TRACE(info["name"]);
      c.model.config.max_patches = info["max_num_patches"];
      f(c);
      ++cases;
    }
  }
  EXPECT_GT(cases, 0);
}

uint32_t crc32(const std::vector<uint8_t>& bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

TEST(SiglipGolden, SizeSearch) {
  int compared = 0;
  for (const fs::path& folder : testing::golden_folders("siglip2")) {
    const Config config = read_config(folder / "image_encoder");
    const Json description = testing::read_json(folder / "case.json");
    for (const Json& size : description["size_search"]) {
      EXPECT_EQ(fitted_grid(config, size["h"], size["w"]), (Grid{size["rows"], size["cols"]})) << size;
      ++compared;
    }
  }
  EXPECT_GT(compared, 15);
}

/// Lanczos to the size of the video, to the bit.
TEST(SiglipGolden, Frame) {
  for_each_case("source", [](const Case& c) {
    const media::Frames frame = c.frame();
    EXPECT_EQ(crc32(frame.rgb), c.info["frame_crc32"].get<uint32_t>());
  });
}

/// rgba.png is the golden's source.
TEST(SiglipGolden, OnWhite) {
  const auto picture = media::read_on_white(ORRERY_SOURCE_DIR "/tests/media/data/rgba.png");
  for (const fs::path& folder : testing::golden_folders("siglip2")) {
    const auto expected =
        testing::read_tensors(folder / "golden.safetensors").at("rgba/on_white").contiguous();
    EXPECT_EQ(expected.sizes(), (Shape{picture.height, picture.width, 3}));
    const auto* bytes = expected.const_data_ptr<uint8_t>();
    EXPECT_EQ(picture.rgb, std::vector<uint8_t>(bytes, bytes + expected.numel()));
  }
}

TEST(SiglipGolden, GreyLevels) {
  for_each_case("levels_in_bf16",
                [](const Case& c) { EXPECT_TRUE(grey_levels(c.frame()).equal(c("levels_in_bf16"))); });
}

TEST(SiglipGolden, GridAndMask) {
  for_each_case("mask", [](const Case& c) {
    const ImagePatches patches = c.patches();
    EXPECT_TRUE(
        at::tensor({patches.grid.rows, patches.grid.columns}, at::kLong).equal(c("spatial_shapes")[0]));
    const Tensor& mask = c("mask")[0];
    EXPECT_EQ(mask.sum().item<int64_t>(), patches.grid.count());
    EXPECT_TRUE(mask.narrow(0, 0, patches.grid.count()).eq(1).all().item<bool>());
    ASSERT_EQ(patches.values.size(0), mask.size(0));
    EXPECT_EQ(patches.values.slice(0, patches.grid.count()).count_nonzero().item<int64_t>(), 0);
  });
}

/// Within kPixel, except for ties that fall the other way: at most one step of bfloat16, few of them.
TEST(SiglipGolden, PixelValues) {
  double flips = 0;
  const auto check = [&](const Case& c, const Tensor& got, const Tensor& expected) {
    ASSERT_EQ(got.sizes(), expected.sizes());
    const Tensor off = (got - expected).abs();
    const double share = off.gt(kPixel).to(at::kDouble).mean().item<double>();
    EXPECT_LE(share, c.is_resized() ? kFlips : 0);
    EXPECT_LE(off.max().item<double>(), kLargestFlip);
    flips = std::max(flips, share);
  };
  for_each_case("source", [&](const Case& c) {
    const Tensor values = c.patches().values;
    if (c.has("pixel_values")) check(c, values, c("pixel_values")[0]);
    if (c.has("pixel_values_picked"))
      check(c, values.index_select(0, at::tensor(c.info["picked_rows"].get<std::vector<int64_t>>())),
            c("pixel_values_picked"));
    const double squares = c.info["pixel_values_sum_of_squares"];
    EXPECT_NEAR(values.sum(at::kDouble).item<double>(), c.info["pixel_values_sum"].get<double>(),
                1e-5 * squares);
    EXPECT_NEAR(values.to(at::kDouble).pow(2).sum().item<double>(), squares, 1e-5 * squares);
  });
  std::printf("pixel values: up to %.2e of a picture's differ\n", flips);
}

/// What the pipeline does not do: it hands on no 8-bit frame.
TEST(SiglipGolden, LevelsAreNotThoseOfBytes) {
  for_each_case("levels_of_uint8_fast", [](const Case& c) {
    const Tensor levels = c.patches().values.narrow(0, 0, c.grid().count()) * 127.5 + 127.5;
    for (const char* name : {"levels_of_uint8_fast", "levels_of_uint8_slow"}) {
      const double off = (levels - c(name)).abs().max().item<double>();
      EXPECT_GT(off, 0.5) << name;
      EXPECT_LT(off, 3) << name;
    }
  });
}

TEST(SiglipGolden, Positions) {
  double worst = 0;
  for_each_case("positions", [&](const Case& c) {
    const double off = testing::max_abs(positions(c.model.weights, c.model.config, c.grid()), c("positions"));
    EXPECT_LE(off, c.golden.description["tolerance"]["positions"].get<double>());
    worst = std::max(worst, off);
  });
  std::printf("positions: max |difference| %.2e\n", worst);
}

/// The tower alone: the pixel values are the reference's.
TEST(SiglipGolden, HiddenStates) {
  double worst = 0;
  int compared = 0;
  const auto check = [&](const Case& c) {
    const auto near = [&](const Tensor& got, const std::string& name) {
      const double off = max_abs_over_rms(got, c(name)[0]);
      EXPECT_LE(off, kTower) << name;
      worst = std::max(worst, off), ++compared;
    };
    const ImagePatches patches{c("pixel_values")[0], c.grid()};
    const Tensor last =
        run_tower(c.model.weights, c.model.config, patches, at::kFloat,
                  [&](int64_t i, const Tensor& state) { near(state, concat("hidden_states.", i)); });
    near(last, "last_hidden_state");
  };
  for_each_case("pixel_values", check, weights::Storage::kMapped);
  for_each_case("pixel_values", check, weights::Storage::kWidened);
  EXPECT_GE(compared, 8);
  std::printf("hidden states: max |difference| / rms %.2e\n", worst);
}

/// From pictures of any size to what the transformer is given.
TEST(SiglipGolden, Features) {
  std::array<double, 2> worst = {0, 0};
  for_each_case("last_hidden_state", [&](const Case& c) {
    const Tensor got = features(c.model, c.source(), c.height(), c.width());
    const double off = max_abs_over_rms(got, c("last_hidden_state")[0]);
    EXPECT_LE(off, c.is_resized() ? kFromResized : kTower);
    auto& most = worst[c.is_resized() ? 1 : 0];
    most = std::max(most, off);
    if (c.has("last_hidden_state_without_mask")) {
      EXPECT_GT(max_abs_over_rms(got, c("last_hidden_state_without_mask")[0]), 0.1);
    }
    const Tensor padded = got.slice(0, c.grid().count());
    if (padded.size(0) > 0) {
      EXPECT_TRUE(padded.equal(padded.narrow(0, 0, 1).expand_as(padded)));
    }
  });
  std::printf("features: max |difference| / rms %.2e, from resized pictures %.2e\n", worst[0], worst[1]);
}

/// The stages of one case from its stored embeddings' picture: wide and tall grids, within what its ties
/// allow.
TEST(SiglipGolden, HiddenStatesOfPictures) {
  for_each_case("hidden_states.0", [](const Case& c) {
    run_tower(c.model.weights, c.model.config, c.patches(), at::kFloat, [&](int64_t i, const Tensor& state) {
      EXPECT_LE(max_abs_over_rms(state, c(concat("hidden_states.", i))[0]), kFromResized) << i;
    });
  });
}

TEST(SiglipGolden, Bfloat16) {
  if (platform::preferred_dtype(platform::detect_cpu()) != at::kBFloat16)
    GTEST_SKIP() << "this CPU computes bfloat16 in software";
  double worst = 0;  // in errors of the reference
  const auto check = [&](const Case& c) {
    const Tensor got = features(c.model, c.source(), c.height(), c.width());
    EXPECT_EQ(got.scalar_type(), at::kBFloat16);
    const double error = c.info["bf16_error"];
    const double off = max_abs_over_rms(got, c("last_hidden_state")[0]) / error;
    EXPECT_LE(off, 2);
    EXPECT_LE(max_abs_over_rms(got, c("last_hidden_state_bf16")[0]), 2 * error);
    worst = std::max(worst, off);
  };
  for_each_case("last_hidden_state_bf16", check, weights::Storage::kMapped, at::kBFloat16);
  for_each_case("last_hidden_state_bf16", check, weights::Storage::kWidened, at::kBFloat16);
  std::printf("bfloat16: %.2f times the reference's own error\n", worst);
}

/// Also: what is not the tower's does not matter, and need not be there.
TEST(SiglipGolden, EveryWeightMatters) {
  const std::string folder = testing::golden_folders("siglip2").at(0) / "image_encoder";
  const Config config = read_config(folder);
  auto tensors = weights::open_weights(folder);
  std::erase_if(tensors, [](const auto& one) {
    return !one.first.starts_with("vision_model.") || one.first.starts_with("vision_model.head.");
  });
  for_each_case("pixel_values", [&](const Case& c) {
    Config same = config;
    same.max_patches = c.model.config.max_patches;
    const ImagePatches patches{c("pixel_values")[0], c.grid()};
    testing::for_each_disturbed(tensors, [&](const std::string& changed, const weights::TensorMap& all) {
      const Weights weights = load_weights(all, same, at::kFloat, weights::Storage::kWidened, changed);
      const double off =
          max_abs_over_rms(run_tower(weights, same, patches, at::kFloat), c("last_hidden_state")[0]);
      // A bias of the keys moves all scores of a query alike.
      if (changed.ends_with("k_proj.bias"))
        EXPECT_LE(off, kTower) << changed;
      else
        EXPECT_GT(off, 10 * kTower) << changed;
    });
  });
}

}  // namespace
}  // namespace orrery::siglip
