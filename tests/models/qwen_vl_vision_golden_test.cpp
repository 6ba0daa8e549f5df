// The vision tower and what the text decoder makes of it, against transformers and diffusers
// (tests/golden/vision_encoder).
#include <ATen/ops/cat.h>

#include "orrery/base/error.h"
#include "orrery/models/qwen_vl/image_prompt.h"
#include "orrery/models/qwen_vl/vision_encoder.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "tests/models/qwen_vl_hash.h"
#include "tests/support/every_weight.h"
#include "tests/support/expect_error.h"
#include "tests/support/golden.h"

namespace orrery::qwen_vl {
namespace {

namespace fs = std::filesystem;
using testing::Json;

// From pixels to prompt, max |difference| / rms. Text enlarges what the tower rounds: the reference itself is
// up to 3e-5 away from its own arithmetic in float64.
constexpr double kThroughBoth = 2e-4;

struct Golden {
  fs::path folder;
  std::map<std::string, Tensor> tensors;
  TextEncoder text;
  VisionEncoder vision;
  double tolerance;  // max |difference| / rms, of the tower and of the decoder alone

  const Tensor& operator()(const Json& c, const std::string& name) const {
    return tensors.at(c["name"].get<std::string>() + "/" + name);
  }

  std::vector<media::Frames> images(const Json& c) const {
    std::vector<media::Frames> out;
    for (size_t i = 0; i < c["image_sizes_hw"].size(); ++i) {
      const Tensor t = (*this)(c, concat("image", i)).contiguous();
      const auto* data = t.const_data_ptr<uint8_t>();
      out.push_back({1, t.size(0), t.size(1), {data, data + t.numel()}});
    }
    return out;
  }

  std::vector<EncodedImage> encoded(const Json& c) const {
    std::vector<EncodedImage> out;
    for (const auto& image : images(c)) out.push_back(encode_image(vision, image, at::kFloat));
    return out;
  }
};

/// Calls f(golden, case) for every case that has `field`, with weights in their file and widened.
template <class F>
void for_each_case(const char* field, const F& f) {
  int cases = 0;
  for (const fs::path& folder : testing::golden_folders("vision_encoder"))
    for (const auto storage : {weights::Storage::kMapped, weights::Storage::kWidened}) {
      const Json description = testing::read_json(folder / "case.json");
      const auto encoder = (folder / "text_encoder").string(), processor = (folder / "processor").string();
      const Golden golden{folder, testing::read_tensors(folder / "golden.safetensors"),
                          open_text_encoder(encoder, processor, at::kFloat, storage),
                          open_vision_encoder(encoder, processor, at::kFloat, storage),
                          description["tolerance"]["float32"]["max_abs_over_rms"]};
      for (const Json& c : description["cases"]) {
        if (!c.contains(field)) continue;
        SCOPED_TRACE(concat(folder.string(), " ", c["name"]));
        f(golden, c);
        ++cases;
      }
    }
  EXPECT_GT(cases, 0);
}

std::vector<int32_t> ids_of(const Tensor& ids) {
  const Tensor flat = ids.to(at::kInt).contiguous();
  return {flat.data_ptr<int32_t>(), flat.data_ptr<int32_t>() + flat.numel()};
}

/// Pictures of this size are not resized; values agree to the bit.
TEST(QwenVlVisionGolden, PixelValues) {
  for_each_case("text", [](const Golden& g, const Json& c) {
    std::vector<Tensor> values;
    std::vector<int64_t> grids;
    for (const auto& image : g.images(c)) {
      const ImagePatches patches = patches_of(g.vision.images, image);
      values.push_back(patches.values);
      grids.insert(grids.end(), {1, patches.grid.rows, patches.grid.columns});
    }
    EXPECT_TRUE(at::cat(values).equal(g(c, "pixel_values")));
    EXPECT_EQ(grids, longs(g(c, "image_grid_thw")));
  });
}

/// The reference joins the windows of all pictures in one list; here each picture has its own.
TEST(QwenVlVisionGolden, WindowsAndPositions) {
  for_each_case("text", [](const Golden& g, const Json& c) {
    std::vector<Tensor> order, positions;
    std::vector<int64_t> bounds = {0};
    int64_t before = 0;
    for (const auto& image : g.images(c)) {
      const Grid grid = patches_of(g.vision.images, image).grid;
      const Grid merged = {grid.rows / 2, grid.columns / 2};
      const Windows windows = windows_of(g.vision.config, merged);
      order.push_back(windows.order + before);
      before += merged.count();
      positions.push_back(patch_positions(g.vision.config, grid));
      for (const int64_t length : windows.lengths) bounds.push_back(bounds.back() + length);
    }
    EXPECT_TRUE(at::cat(order).equal(g(c, "window_index")));
    EXPECT_EQ(bounds, longs(g(c, "window_bounds").to(at::kLong)));
    EXPECT_TRUE(at::cat(positions).equal(g(c, "patch_positions")));
  });
}

TEST(QwenVlVisionGolden, ImageEmbeddings) {
  double worst = 0;
  for_each_case("text", [&](const Golden& g, const Json& c) {
    std::vector<Tensor> rows;
    for (const EncodedImage& image : g.encoded(c)) rows.push_back(image.rows);
    const double off = testing::max_abs_over_rms(at::cat(rows), g(c, "image_embeds"));
    EXPECT_LE(off, g.tolerance);
    worst = std::max(worst, off);
  });
  std::printf("picture embeddings: max |difference| / rms %.2e\n", worst);
}

/// The decoder alone: the pictures' rows are the reference's.
TEST(QwenVlVisionGolden, HiddenStates) {
  double worst = 0;
  for_each_case("text", [&](const Golden& g, const Json& c) {
    std::vector<EncodedImage> images;
    std::vector<Grid> grids;
    int64_t start = 0;
    for (const auto& image : g.images(c)) {
      const Grid patches = patches_of(g.vision.images, image).grid;
      grids.push_back({patches.rows / 2, patches.columns / 2});
      images.push_back({g(c, "image_embeds").narrow(0, start, grids.back().count()), grids.back()});
      start += grids.back().count();
    }
    const auto ids = expand_placeholders(g.text.tokenizer.encode(c["text"].get<std::string>()),
                                         g.text.config.image_token, grids);
    ASSERT_EQ(ids, ids_of(g(c, "ids")));
    const TextInput input = text_input(g.text.weights, g.text.config, ids, images, at::kFloat);
    EXPECT_TRUE(input.positions.equal(g(c, "position_ids")));
    run_text(g.text.weights, g.text.config, input, [&](int64_t i, const Tensor& state) {
      if (i == 0) return;
      const auto name =
          i == g.text.config.layers ? std::string("hidden_states.last") : concat("hidden_states.", i);
      const double off = testing::max_abs_over_rms(state, g(c, name)[0]);
      EXPECT_LE(off, g.tolerance) << name;
      worst = std::max(worst, off);
    });
  });
  std::printf("hidden states with pictures: max |difference| / rms %.2e\n", worst);
}

/// From pictures of any size to what the transformer is given.
TEST(QwenVlVisionGolden, EditPrompts) {
  double worst = 0;
  for_each_case("prompt", [&](const Golden& g, const Json& c) {
    const auto prompt = encode_image_prompt(g.text, c["prompt"].get<std::string>(), g.encoded(c),
                                            PromptTemplate::kEditPlus, /*max_tokens=*/1, at::kFloat);
    const Tensor& expected = g(c, "prompt_embeds")[0];
    EXPECT_EQ(prompt.kept, expected.size(0));
    EXPECT_EQ(prompt.dropped, 0);
    const double off = testing::max_abs_over_rms(prompt.embeddings, expected);
    EXPECT_LE(off, kThroughBoth);
    worst = std::max(worst, off);
  });
  std::printf("edit prompts: max |difference| / rms %.2e\n", worst);
}

TEST(QwenVlVisionGolden, EveryWeightMatters) {
  const fs::path folder = testing::golden_folders("vision_encoder").at(0);
  const VisionConfig config = read_vision_config(folder / "text_encoder/config.json");
  const auto tensors = testing::read_tensors(folder / "golden.safetensors");
  const Json c = testing::read_json(folder / "case.json")["cases"][0];
  const std::string name = c["name"];
  const auto grid = longs(tensors.at(name + "/image_grid_thw"));
  const ImagePatches patches{tensors.at(name + "/pixel_values"), {grid[1], grid[2]}};
  auto original = weights::qwen_vl_names(weights::open_weights(folder / "text_encoder"));
  std::erase_if(original, [](const auto& one) { return !one.first.starts_with("visual."); });
  testing::for_each_disturbed(
      original, [&](const std::string& changed, const weights::TensorMap& with_change) {
        weights::Loader loader(with_change, at::kFloat, weights::Storage::kWidened, changed);
        VisionWeights weights;
        loader("visual", weights, config);
        loader.finish();
        const Tensor rows = run_vision(weights, config, patches, at::kFloat).rows;
        EXPECT_GT(testing::max_abs_over_rms(rows, tensors.at(name + "/image_embeds")), 2e-4) << changed;
      });
}

TEST(QwenVlVisionGolden, Refusals) {
  const fs::path folder = testing::golden_folders("vision_encoder").at(0);
  const auto encoder = (folder / "text_encoder").string(), processor = (folder / "processor").string();
  auto text = open_text_encoder(encoder, processor, at::kFloat, weights::Storage::kMapped);
  const auto vision = open_vision_encoder(encoder, processor, at::kFloat, weights::Storage::kMapped);
  const std::vector<EncodedImage> images = {
      encode_image(vision, {1, 60, 60, std::vector<uint8_t>(60 * 60 * 3, 99)}, at::kFloat)};
  const auto encode = [&](const char* prompt, PromptTemplate kind, std::span<const EncodedImage> given,
                          int64_t max_tokens = 512) {
    return encode_image_prompt(text, prompt, given, kind, max_tokens, at::kFloat);
  };
  using testing::expect_error;
  expect_error(ErrorKind::kRequest, "takes no picture, 1 given",
               [&] { encode("x", PromptTemplate::kText, images); });
  expect_error(ErrorKind::kRequest, "edits one picture, 0 given",
               [&] { encode("x", PromptTemplate::kEdit, {}); });
  expect_error(ErrorKind::kRequest, "none given", [&] { encode("x", PromptTemplate::kEditPlus, {}); });
  expect_error(ErrorKind::kRequest, "2 places for pictures (<|image_pad|>), 1 given",
               [&] { encode("a <|image_pad|>", PromptTemplate::kEdit, images); });
  expect_error(ErrorKind::kRequest, "at least 1 token", [&] { encode("x", PromptTemplate::kText, {}, 0); });
  text.config.image_token = 7;
  expect_error(ErrorKind::kCheckpoint, "image_token_id is 7",
               [&] { encode("x", PromptTemplate::kEdit, images); });
  const fs::path other = testing::golden_folders("vision_encoder").at(1) / "processor";
  expect_error(ErrorKind::kCheckpoint, "preprocessor_config.json has patches of",
               [&] { open_vision_encoder(encoder, other.string(), at::kFloat, weights::Storage::kMapped); });
}

}  // namespace
}  // namespace orrery::qwen_vl
