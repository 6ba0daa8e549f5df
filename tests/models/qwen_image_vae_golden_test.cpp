// The Wan VAE code against AutoencoderKLQwenImage of diffusers (tests/golden/qwen_image_vae): pictures are
// clips of one frame.
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "orrery/models/load.h"
#include "orrery/models/wan_vae/wan_vae.h"
#include "orrery/weights/names.h"
#include "orrery/weights/source.h"
#include "tests/support/every_weight.h"
#include "tests/support/golden.h"

namespace orrery {
namespace {

using namespace testing;

class QwenImageVaeGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& path : golden_folders("qwen_image_vae"))
      folders.push_back({path, wan_vae::read_config(path / "vae/config.json"), read_json(path / "case.json"),
                         read_tensors(path / "golden.safetensors")});
    ASSERT_FALSE(folders.empty());
  }

  struct Folder {
    fs::path path;
    wan_vae::Config config;
    Json description;
    std::map<std::string, Tensor> tensors;

    wan_vae::Weights open(weights::TensorMap map, bool encoder = true, bool decoder = true) const {
      auto w = load<wan_vae::Weights>(weights::wan_vae_names(std::move(map)), config, at::kFloat,
                                      weights::Storage::kWidened, path);
      if (encoder) prepare_encoder(w, at::kFloat);
      if (decoder) prepare_decoder(w, at::kFloat);
      return w;
    }
    weights::TensorMap files() const { return weights::open_weights(path / "vae"); }
    double tolerance() const { return description["tolerance"]["float32"]["max_abs"]; }
  };

  /// One picture of a case.
  struct Picture {
    const Folder& folder;
    const wan_vae::Weights& weights;
    std::string name;
    int64_t index;

    bool has(const std::string& tensor) const { return folder.tensors.contains(name + "/" + tensor); }
    Tensor get(const std::string& tensor) const { return folder.tensors.at(name + "/" + tensor)[index]; }
    Tensor mean(const wan_vae::Options& options = {}) const {
      return encode(weights, folder.config, get("pixels"), options);
    }
    Tensor pixels(const wan_vae::Options& options = {}) const {
      const Tensor z = denormalise(get("decode_latents"), folder.config, wan_vae::Statistics::kFloat32);
      return decode(weights, folder.config, z, options);
    }
    void expect_near(const Tensor& got, const std::string& tensor) const {
      EXPECT_LE(max_abs(got, get(tensor)), folder.tolerance()) << folder.path << " " << name << " " << tensor;
    }
  };

  const c10::InferenceMode guard;
  std::vector<Folder> folders;
};

TEST_F(QwenImageVaeGolden, Pictures) {
  int checked = 0;
  for (const auto& folder : folders) {
    const auto weights = folder.open(folder.files());
    for (const auto& c : folder.description["cases"])
      for (int64_t i = 0; i < c["shapes"]["pixels"][1][0].get<int64_t>(); ++i) {
        const Picture picture{folder, weights, c["name"], i};
        if (!picture.has("encode.mean")) continue;
        const Tensor mean = picture.mean();
        picture.expect_near(mean, "encode.mean");
        picture.expect_near(normalise(mean, folder.config, wan_vae::Statistics::kFloat32), "encode.latents");
        picture.expect_near(picture.pixels(), "decode.sample_unclamped");
        ++checked;
      }
  }
  EXPECT_GE(checked, 4);
}

// Unlike Wan's, this tiled decode is not clamped.
TEST_F(QwenImageVaeGolden, Tiles) {
  int checked = 0;
  for (const auto& folder : folders) {
    const auto weights = folder.open(folder.files());
    for (const auto& c : folder.description["cases"]) {
      if (!c.contains("tiling")) continue;
      const Json& t = c["tiling"];
      const wan_vae::Options tiled{
          .tiling = wan_vae::Tiling{t["tile_sample_min_height"], t["tile_sample_min_width"],
                                    t["tile_sample_stride_height"], t["tile_sample_stride_width"]}};
      const Picture picture{folder, weights, c["name"], 0};
      picture.expect_near(picture.mean(), "encode.mean_untiled");
      picture.expect_near(picture.mean(tiled), "encode.mean_tiled");
      picture.expect_near(picture.pixels(tiled), "decode.tiled");
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// But for the temporal convolutions, which a single frame never meets.
TEST_F(QwenImageVaeGolden, EveryWeightMatters) {
  const Folder& folder = folders.front();
  const auto files = folder.files();
  const std::string name = folder.description["cases"][0]["name"];
  const auto run = [&](const weights::TensorMap& tensors, bool encoder) {
    const auto weights = folder.open(tensors, encoder, !encoder);
    const Picture picture{folder, weights, name, 0};
    return encoder ? picture.mean() : picture.pixels();
  };
  const Tensor mean = run(files, true), pixels = run(files, false);
  for_each_disturbed(files, [&](const std::string& tensor, const weights::TensorMap& changed) {
    const bool encoder = tensor.starts_with("encoder.") || tensor.starts_with("quant_conv");
    const double change = max_abs(run(changed, encoder), encoder ? mean : pixels);
    if (tensor.find("time_conv") != std::string::npos) {
      EXPECT_EQ(change, 0) << tensor;
    } else {
      EXPECT_GT(change, folder.tolerance()) << tensor;
    }
  });
}

}  // namespace
}  // namespace orrery
