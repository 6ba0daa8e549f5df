#include "orrery/weights/torch_file.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "orrery/weights/zip.h"
#include "tests/weights/files.h"
#include "tests/weights/torch_archive.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;
using namespace std::string_literals;

std::string floats(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += little(static_cast<float>(i));
  return out;
}

struct Options {
  size_t alignment = 64, misplaced = 0;
  bool zip64 = false;
  std::string byteorder = "little";
};

/// An archive with twelve floats as storage 0.
std::string archive(const std::string& pickle, const Options& options = {}) {
  ZipWriter zip;
  zip.add("a/data.pkl", pickle);
  zip.add("a/byteorder", options.byteorder);
  zip.add("a/data/0", floats(12), options.alignment, options.misplaced);
  return zip.finish(options.zip64);
}

TensorMap read(const std::string& content) {
  const TempDir folder;
  return open_torch_file(write(folder, "a.pt", content));
}

std::string code_of_pickle(const std::string& pickle) {
  return code_of([&] { read(archive(pickle)); });
}

const TensorRecord kWhole{"0", "FloatStorage", 12, 0, {3, 4}, {4, 1}};
const Tensor kExpected = at::arange(12, at::kFloat).view({3, 4});

TEST(TorchFile, ReadsViewsOfASharedStorage) {
  const auto tensors =
      read(archive(pickled(dict({{"whole", tensor(kWhole)},
                                 {"transposed", tensor({"0", "FloatStorage", 12, 0, {4, 3}, {1, 4}})},
                                 {"column", tensor({"0", "FloatStorage", 12, 1, {3}, {4}})},
                                 {"scalar", tensor({"0", "FloatStorage", 12, 7, {}, {}})},
                                 {"empty", tensor({"0", "FloatStorage", 12, 12, {0, 5}, {5, 1}})}}))));
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_TRUE(at::equal(tensors.at("whole"), kExpected));
  EXPECT_TRUE(at::equal(tensors.at("transposed"), kExpected.t()));
  EXPECT_TRUE(at::equal(tensors.at("column"), kExpected.select(1, 1)));
  EXPECT_EQ(tensors.at("scalar").item<float>(), 7.f);
  EXPECT_EQ(tensors.at("empty").sizes(), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(tensors.at("whole").data_ptr(), tensors.at("transposed").data_ptr()) << "views are not copied";
}

TEST(TorchFile, ReadsZip64AndRecordsThatAreNotAligned) {
  const auto pickle = pickled(dict({{"w", tensor(kWhole)}}));
  EXPECT_TRUE(at::equal(read(archive(pickle, {.zip64 = true})).at("w"), kExpected));
  const auto w = read(archive(pickle, {.misplaced = 1})).at("w");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data_ptr()) % alignof(float), 0u);
  EXPECT_TRUE(at::equal(w, kExpected));
}

TEST(TorchFile, UnwrapsStateDicts) {
  const auto inner = dict({{"w", tensor(kWhole)}, {"_extra_state", "N"}, {"steps", integer(5)}});
  for (const char* wrapper : {"model", "module", "state_dict"}) {
    const auto tensors = read(archive(pickled(dict({{"iteration", integer(3)}, {wrapper, inner}}))));
    ASSERT_EQ(tensors.size(), 1u) << wrapper;
    EXPECT_TRUE(at::equal(tensors.at("w"), kExpected)) << wrapper;
  }
}

TEST(TorchFile, ReadsParametersAndTensorsOfLaterTorch) {
  const auto parameter = "ctorch._utils\n_rebuild_parameter\n(" + tensor(kWhole) +
                         "\x88"
                         "ccollections\nOrderedDict\n)RtR";
  // _rebuild_tensor_v3: an untyped storage, counted in bytes, and a dtype.
  const auto later = "ctorch._utils\n_rebuild_tensor_v3\n((" + text("storage") +
                     "ctorch.storage\nUntypedStorage\n" + text("0") + text("cpu") + integer(48) + "tQ" +
                     integer(4) + tuple({2}) + tuple({1}) +
                     "\x89"
                     "ccollections\nOrderedDict\n)R" +
                     "ctorch\nfloat32\ntR";
  const auto tensors = read(archive(pickled(dict({{"p", parameter}, {"v3", later}}))));
  EXPECT_TRUE(at::equal(tensors.at("p"), kExpected));
  EXPECT_TRUE(at::equal(tensors.at("v3"), at::arange(4, 6, at::kFloat)));
}

TEST(TorchFile, IgnoresStateOfDictionaries) {
  // OrderedDict with _metadata, set by BUILD, as Module.state_dict() leaves it.
  const auto state =
      "ccollections\nOrderedDict\n)R(" + text("w") + tensor(kWhole) + "u" + dict({{"_metadata", "}"}}) + "b";
  EXPECT_TRUE(at::equal(read(archive(pickled(state))).at("w"), kExpected));
}

// TransformerEngine leaves an io.BytesIO beside each layer's weights.
TEST(TorchFile, LeavesOutBuffers) {
  const auto buffer =
      "c_io\nBytesIO\n)\x81(c_codecs\nencode\n" + text("state") + text("latin1") + "\x86RK\0Ntb"s;
  const auto tensors = read(archive(pickled(dict({{"w", tensor(kWhole)}, {"w._extra_state", buffer}}))));
  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_TRUE(at::equal(tensors.at("w"), kExpected));
}

TEST(TorchFile, TensorsOutliveTheFile) {
  const TempDir folder;
  const auto path = write(folder, "a.pt", archive(pickled(dict({{"w", tensor(kWhole)}}))));
  const Tensor w = open_torch_file(path).at("w");
  fs::remove(path);
  EXPECT_TRUE(at::equal(w, kExpected));
}

TEST(TorchFile, RefusesGlobalsAndCallsByName) {
  const auto error = error_of([&] { read(archive(pickled("cos\nsystem\n(" + text("true") + "tR"))); });
  EXPECT_EQ(error.code(), "unsafe_pickle");
  EXPECT_THAT(error.message(), HasSubstr("os.system"));
  EXPECT_EQ(code_of_pickle(pickled("ctorch\nload\n.")), "unsafe_pickle");
  EXPECT_EQ(code_of_pickle(pickled("}}R")), "corrupt_pickle") << "arguments that are no tuple";
  EXPECT_EQ(code_of_pickle(pickled("})R")), "unsafe_pickle") << "a call of a dictionary";
  EXPECT_EQ(code_of_pickle(pickled("ctorch\nFloatStorage\n)R")), "unsafe_pickle");
  EXPECT_EQ(code_of_pickle(pickled("ccollections\nOrderedDict\n)\x81")), "unsafe_pickle") << "NEWOBJ";
  EXPECT_EQ(code_of_pickle(pickled("(ios\nsystem\n")), "unsafe_pickle") << "INST";
  EXPECT_EQ(code_of_pickle(pickled("ctorch\nSize\n}b")), "unsafe_pickle") << "BUILD of a function";
  EXPECT_EQ(code_of_pickle(pickled("ctorch\nQInt8Storage\n")), "unsupported");
  EXPECT_EQ(code_of_pickle("\x80\x09}."), "unsupported") << "a protocol of the future";
}

TEST(TorchFile, RefusesBrokenStreams) {
  EXPECT_EQ(code_of_pickle(""), "corrupt_pickle");
  EXPECT_EQ(code_of_pickle("\x80"), "corrupt_pickle");
  EXPECT_EQ(code_of_pickle(pickled("\xff")), "corrupt_pickle");
  EXPECT_EQ(code_of_pickle(pickled("(}")), "corrupt_pickle") << "a mark is left";
  EXPECT_EQ(code_of_pickle(pickled("}}")), "corrupt_pickle") << "two values are left";
  EXPECT_EQ(code_of_pickle(pickled("}(K\1u")), "corrupt_pickle") << "a key without a value";
  EXPECT_EQ(code_of_pickle(pickled(")K\1a")), "corrupt_pickle") << "appending to a tuple";
  EXPECT_EQ(code_of_pickle(pickled("}(K\1s")), "corrupt_pickle") << "taking what lies below a mark";
  EXPECT_EQ(code_of_pickle(pickled("\x8a\x09" + std::string(9, '\1'))), "corrupt_pickle") << "72 bits";
  EXPECT_EQ(code_of_pickle(pickled("\x95" + little<uint64_t>(1 << 20) + "}")), "corrupt_pickle") << "frame";
  EXPECT_EQ(code_of_pickle(pickled(dict({{"w", tensor(kWhole)}, {"w", tensor(kWhole)}}))), "corrupt_pickle");
  EXPECT_EQ(code_of_pickle(pickled("})"
                                   "s")),
            "corrupt_pickle");
  EXPECT_EQ(code_of_pickle(pickled(")")), "unsupported") << "no dictionary";
  EXPECT_EQ(code_of_pickle(pickled(dict({{"weights", dict({{"w", tensor(kWhole)}})}}))), "missing_key")
      << "unknown wrapper";
}

// A value that holds itself, and one that nests two hundred thousand deep: neither may cost the stack.
TEST(TorchFile, SurvivesCyclesAndDepth) {
  EXPECT_EQ(code_of_pickle(pickled("]q\1h\1a")), "unsupported");
  EXPECT_EQ(code_of_pickle(pickled(")" + std::string(200'000, '\x85'))), "unsupported");
  EXPECT_EQ(code_of_pickle(pickled(std::string(2'000'000, ')'))), "unsupported")
      << "more steps than any checkpoint";
}

TEST(TorchFile, RefusesImpossibleTensors) {
  const auto code = [&](const TensorRecord& r) { return code_of_pickle(pickled(dict({{"w", tensor(r)}}))); };
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(code({"0", "FloatStorage", 12, 13, {0}, {1}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", 12, 1, {3, 4}, {4, 1}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", 12, 0, {3, 4}, {-4, 1}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", 12, 0, {3, 4}, {1}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", 12, 0, {3}, {std::numeric_limits<int64_t>::max()}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", 12, 0, {big}, {0}}), "invalid_tensor") << "an expanded view";
  EXPECT_EQ(code({"0", "FloatStorage", 12, 0, std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1)}),
            "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", -1, 0, {}, {}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", std::numeric_limits<int64_t>::max(), 0, {}, {}}), "invalid_tensor");
  EXPECT_EQ(code({"0", "FloatStorage", 11, 0, {}, {}}), "corrupt_archive")
      << "the record is longer than the storage";
  EXPECT_EQ(code({"0", "DoubleStorage", 12, 0, {}, {}}), "corrupt_archive");
  EXPECT_EQ(code({"../0", "FloatStorage", 12, 0, {}, {}}), "corrupt_archive");
  const auto error = error_of([&] {
    read(archive(pickled(dict({{"blocks.3.w", tensor({"0", "FloatStorage", 12, 4, {9}, {1}})}}))));
  });
  EXPECT_THAT(error.message(),
              HasSubstr("blocks.3.w of sizes [9], strides [1], offset 4 in a storage of 12 elements"));
}

TEST(TorchFile, RefusesOtherContainers) {
  EXPECT_EQ(code_of([&] { read(archive(pickled("}"), {.byteorder = "big"})); }), "unsupported");
  const auto legacy =
      error_of([&] { read("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.more"); });
  EXPECT_EQ(legacy.code(), "unsupported");
  EXPECT_THAT(legacy.message(), HasSubstr("torch.save(torch.load("));
}

TEST(Zip, RefusesBrokenArchives) {
  const auto whole = archive(pickled("}"));
  const auto code = [&](const std::string& bytes) { return code_of([&] { read_zip(bytes, "a.pt"); }); };
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(code(whole.substr(0, length)), "corrupt_archive") << length;
  EXPECT_EQ(code(whole + "x"), "corrupt_archive");

  ZipWriter twice;
  twice.add("a/data.pkl", "1");
  twice.add("a/data.pkl", "2");
  EXPECT_EQ(code(twice.finish()), "corrupt_archive");

  // Two directory entries of one record: archives that unfold to more than their size begin so.
  ZipWriter one;
  one.add("a/x", "content");
  std::string bytes = one.finish();
  const size_t directory = bytes.find("PK\1\2"), end = bytes.find("PK\5\6");
  const std::string entry = bytes.substr(directory, end - directory);
  bytes.insert(end, entry);
  bytes.replace(bytes.size() - 14, 8,
                little<uint16_t>(2) + little<uint16_t>(2) + little(static_cast<uint32_t>(2 * entry.size())));
  EXPECT_THAT(error_of([&] { read_zip(bytes, "a.pt"); }).message(), HasSubstr("overlaps"));
}

}  // namespace
}  // namespace orrery::weights
