#include "orrery/weights/visitors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include "orrery/weights/safetensors.h"
#include "tests/weights/files.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

struct Layer {
  Tensor weight, bias;
};
struct Net {
  std::vector<Layer> layers;
  Tensor norm;
};

template <class B>
void bind(B& b, Layer& w, int64_t width) {
  b("weight", w.weight, Shape{width + 1, width});
  b("bias", w.bias, Shape{width + 1});
}

template <class B>
void bind(B& b, Net& w, int64_t layers, int64_t width) {
  b.list("layers", w.layers, layers, width);
  b("norm.weight", w.norm, Shape{width});
}

constexpr int64_t kLayers = 2, kWidth = 3;

TensorMap checkpoint(at::ScalarType dtype = at::kBFloat16) {
  TensorMap tensors;
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = "layers." + std::to_string(i) + ".";
    tensors[layer + "weight"] = (at::arange(12, at::kFloat).view({4, 3}) + i).to(dtype);
    tensors[layer + "bias"] = (at::arange(4, at::kFloat) - i).to(dtype);
  }
  tensors["norm.weight"] = at::ones({kWidth}).to(dtype);
  return tensors;
}

Net load(TensorMap tensors, Storage storage = Storage::kMapped, at::ScalarType compute = at::kFloat,
         const Loader::Predicate& may_stay_unused = {}) {
  Loader loader(std::move(tensors), compute, storage, "net.safetensors");
  Net net;
  bind(loader, net, kLayers, kWidth);
  loader.finish(may_stay_unused);
  return net;
}

TEST(Loader, MappedKeepsMatricesInTheFileAndConvertsVectors) {
  const TempDir folder;
  write_safetensors(folder / "net.safetensors", checkpoint());
  auto tensors = open_safetensors(folder / "net.safetensors");
  const void* in_file = tensors.at("layers.1.weight").data_ptr();
  const Net net = load(std::move(tensors));
  EXPECT_EQ(net.layers[1].weight.data_ptr(), in_file);
  EXPECT_EQ(net.layers[1].weight.scalar_type(), at::kBFloat16);
  EXPECT_EQ(net.layers[1].bias.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(net.layers[1].bias, at::arange(4, at::kFloat) - 1));
}

TEST(Loader, WidenedConvertsEverything) {
  const Net net = load(checkpoint(), Storage::kWidened);
  ASSERT_EQ(net.layers.size(), 2u);
  for (const auto& layer : net.layers) {
    EXPECT_EQ(layer.weight.scalar_type(), at::kFloat);
    EXPECT_EQ(layer.bias.scalar_type(), at::kFloat);
  }
  EXPECT_TRUE(at::equal(net.layers[1].weight, at::arange(12, at::kFloat).view({4, 3}) + 1));
}

TEST(Loader, NeverLeavesAMatrixThatIsWiderThanTheComputeType) {
  EXPECT_EQ(load(checkpoint(at::kFloat), Storage::kMapped, at::kBFloat16).layers[0].weight.scalar_type(),
            at::kBFloat16);
  EXPECT_EQ(load(checkpoint(at::kHalf), Storage::kMapped, at::kBFloat16).layers[0].weight.scalar_type(),
            at::kBFloat16);
  EXPECT_EQ(load(checkpoint(at::kDouble)).layers[0].weight.scalar_type(), at::kFloat);
  EXPECT_EQ(load(checkpoint(at::kHalf)).layers[0].weight.scalar_type(), at::kHalf);
}

TEST(Loader, MakesViewsContiguous) {
  auto tensors = checkpoint();
  tensors["layers.0.weight"] = at::arange(12, at::kFloat).view({3, 4}).t();
  const Net net = load(std::move(tensors));
  EXPECT_TRUE(net.layers[0].weight.is_contiguous());
  EXPECT_TRUE(at::equal(net.layers[0].weight, at::arange(12, at::kFloat).view({3, 4}).t()));
}

// Every weight matters: without any one of them, or with any two of different shape exchanged, loading is
// refused.
TEST(Loader, RefusesADroppedOrExchangedTensor) {
  const auto whole = checkpoint();
  for (const auto& [name, tensor] : whole) {
    auto tensors = whole;
    tensors.erase(name);
    const auto error = error_of([&] { load(std::move(tensors)); });
    EXPECT_EQ(error.kind(), ErrorKind::kCheckpoint);
    EXPECT_EQ(error.code(), "missing_key");
    EXPECT_THAT(error.message(), HasSubstr("net.safetensors does not fit"));
    EXPECT_THAT(error.message(), HasSubstr("1 missing: " + name));
    for (const auto& [other, other_tensor] : whole) {
      if (other_tensor.sizes() == tensor.sizes()) continue;
      auto exchanged = whole;
      std::swap(exchanged[name], exchanged[other]);
      EXPECT_EQ(code_of([&] { load(std::move(exchanged)); }), "invalid_shape") << name << " and " << other;
    }
  }
}

TEST(Loader, SaysWhatItExpectedAndFound) {
  auto tensors = checkpoint();
  tensors["norm.weight"] = at::ones({2, 2});
  tensors["layers.0.bias"] = at::ones({4}, at::kLong);
  const auto error = error_of([&] { load(std::move(tensors)); });
  EXPECT_EQ(error.code(), "invalid_shape");
  EXPECT_THAT(error.message(),
              HasSubstr("2 of the wrong shape or type: layers.0.bias (expected floating point, found Long), "
                        "norm.weight (expected [3], found [2, 2])"));
}

TEST(Loader, RefusesWhatNothingUsesUnlessItMayStay) {
  auto tensors = checkpoint();
  tensors["visual.weight"] = at::ones({1});
  const auto visual = [](std::string_view name) { return name.starts_with("visual."); };
  EXPECT_NO_THROW(load(tensors, Storage::kMapped, at::kFloat, visual));
  tensors["extra"] = at::ones({1});
  const auto error = error_of([&] { load(tensors, Storage::kMapped, at::kFloat, visual); });
  EXPECT_EQ(error.code(), "unknown_key");
  EXPECT_THAT(error.message(), HasSubstr("1 unknown: extra"));
  EXPECT_THAT(error.message(), Not(HasSubstr("visual")));
}

TEST(Loader, ListsTenNamesAndCountsAll) {
  auto tensors = checkpoint();
  for (int i = 10; i < 35; ++i) tensors["x" + std::to_string(i)] = at::ones({1});
  const auto error = error_of([&] { load(tensors); });
  EXPECT_THAT(error.message(), HasSubstr("25 unknown: x10, x11, x12, x13, x14, x15, x16, x17, x18, x19, …"));
  EXPECT_THAT(error.message(), Not(HasSubstr("x20")));
}

TEST(Loader, NamesTensorsAsTheFileDoes) {
  auto tensors = checkpoint();
  tensors.erase("norm.weight");
  Loader loader(tensors, at::kFloat, Storage::kMapped, "net.pt",
                [](std::string_view name) { return "net." + std::string(name); });
  Net net;
  bind(loader, net, kLayers, kWidth);
  EXPECT_THAT(error_of([&] { loader.finish(); }).message(),
              HasSubstr("norm.weight (net.norm.weight in the file)"));
}

TEST(Sizer, CountsWithoutFiles) {
  Sizer sizer;
  Net net;
  bind(sizer, net, kLayers, kWidth);
  EXPECT_EQ(sizer.tensors(), 5);
  EXPECT_EQ(sizer.matrices(), 2 * 12);
  EXPECT_EQ(sizer.parameters(), 2 * (12 + 4) + 3);
  EXPECT_EQ(sizer.bytes(at::kBFloat16), 2 * 35);
  EXPECT_EQ(sizer.bytes(at::kFloat), 4 * 35);
  EXPECT_FALSE(net.norm.defined());
}

TEST(Names, ListsInTheOrderOfBind) {
  Names names;
  Net net;
  bind(names, net, 1, kWidth);
  EXPECT_THAT(names.entries, ElementsAre(Pair("layers.0.weight", Shape{4, 3}),
                                         Pair("layers.0.bias", Shape{4}), Pair("norm.weight", Shape{3})));
}

}  // namespace
}  // namespace orrery::weights
