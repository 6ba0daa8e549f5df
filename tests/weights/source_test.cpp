#include "orrery/weights/source.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>

#include "orrery/weights/safetensors.h"
#include "tests/weights/files.h"
#include "tests/weights/torch_archive.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;

void save(const std::string& path, int64_t count) { write_safetensors(path, {{"w", at::arange(count)}}); }
int64_t opened(const std::string& path) { return open_weights(path).at("w").numel(); }

std::string torch_archive() {
  ZipWriter zip;
  zip.add("a/data.pkl", pickled(dict({{"w", tensor({"0", "ByteStorage", 5, 0, {5}, {1}})}})));
  zip.add("a/data/0", "12345");
  return zip.finish();
}

TEST(Source, OpensFilesByTheirName) {
  const TempDir folder;
  save(folder / "x.safetensors", 2);
  EXPECT_EQ(opened(folder / "x.safetensors"), 2);
  for (const char* name : {"x.pt", "x.pth", "x.bin"})
    EXPECT_EQ(opened(write(folder, name, torch_archive())), 5) << name;
  write(folder, "y.safetensors.index.json", R"({"weight_map":{"w":"x.safetensors"}})");
  EXPECT_EQ(opened(folder / "y.safetensors.index.json"), 2);
  EXPECT_EQ(code_of([&] { open_weights(write(folder, "x.onnx", "")); }), "unsupported");
  EXPECT_EQ(code_of([&] { open_weights(folder / "none.pt"); }), "missing_file");
}

TEST(Source, PrefersTheLayoutsNamesInAFolder) {
  const TempDir folder;
  write(folder, "x.pt", torch_archive());
  EXPECT_EQ(opened(folder.path()), 5);
  save(folder / "other.safetensors", 1);
  EXPECT_EQ(opened(folder.path()), 1);
  save(folder / "model-1.safetensors", 2);
  write(folder, "model.safetensors.index.json", R"({"weight_map":{"w":"model-1.safetensors"}})");
  EXPECT_EQ(opened(folder.path()), 2);
  save(folder / "model.safetensors", 3);
  EXPECT_EQ(opened(folder.path()), 3);
  save(folder / "diffusion_pytorch_model.safetensors", 4);
  EXPECT_EQ(opened(folder.path()), 4);
}

TEST(Source, SaysWhatItLookedForInAFolder) {
  const TempDir folder;
  const auto error = error_of([&] { open_weights(folder.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kCheckpoint);
  EXPECT_EQ(error.code(), "missing_file");
  EXPECT_THAT(error.message(), HasSubstr("diffusion_pytorch_model.safetensors, model.safetensors"));
  save(folder / "one.safetensors", 1);
  save(folder / "two.safetensors", 1);
  EXPECT_THAT(error_of([&] { open_weights(folder.path()); }).message(),
              HasSubstr("found one.safetensors, two.safetensors"));
}

}  // namespace
}  // namespace orrery::weights
