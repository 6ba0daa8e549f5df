#include "orrery/weights/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "orrery/base/clock.h"
#include "orrery/base/text.h"
#include "tests/weights/files.h"
#include "tests/weights/torch_archive.h"

namespace orrery::weights {
namespace {

using namespace orrery::testing;
using ::testing::HasSubstr;

std::string safetensors(const std::string& header, size_t data_bytes) {
  return little<uint64_t>(header.size()) + header + std::string(data_bytes, '\1');
}

std::string code_of_header(const std::string& header, size_t data_bytes) {
  const TempDir folder;
  const auto path = write(folder, "a.safetensors", safetensors(header, data_bytes));
  return code_of([&] { open_safetensors(path); });
}

/// Resident bytes of mapped files.
int64_t mapped_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "RssFile:") {
      int64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes << 10;
    }
  return -1;
}

TEST(Safetensors, ALargeTensorTakesItsPagesAlong) {
  const TempDir folder;
  const int64_t bytes = int64_t{32} << 20, slack = int64_t{4} << 20;  // slack: pages of libraries
  write_safetensors(folder / "a.safetensors",
                    {{"a", at::full({bytes / 4}, 2.0f)}, {"b", at::full({bytes / 4}, 3.0f)}});
  auto tensors = open_safetensors(folder / "a.safetensors");
  const int64_t before = mapped_bytes();
  EXPECT_EQ(tensors.at("a").sum().item<float>() / 2, tensors.at("b").sum().item<float>() / 3);
  EXPECT_GE(mapped_bytes() - before, 2 * bytes - slack);
  tensors.erase("a");
  EXPECT_LE(mapped_bytes() - before, bytes + slack);
  EXPECT_EQ(tensors.at("b")[-1].item<float>(), 3);
}

TEST(Safetensors, WritesWhatItReads) {
  const TempDir folder;
  TensorMap tensors;
  int64_t step = 0;
  for (auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kShort,
                     at::kChar, at::kByte, at::kBool})
    tensors[c10::toString(dtype)] = at::arange(3 + step++).to(dtype);
  tensors["transposed"] = at::arange(6, at::kFloat).view({2, 3}).t();
  tensors["scalar"] = at::full({}, 2.5);
  tensors["empty"] = at::empty({0, 4});
  write_safetensors(folder / "all.safetensors", tensors, {{"format", "pt"}, {"note", "ü \" \n"}});

  const auto read = open_safetensors(folder / "all.safetensors");
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(read.at(name).is_contiguous()) << name;
    EXPECT_TRUE(at::equal(read.at(name), tensor)) << name;
  }
  const auto metadata = safetensors_metadata(folder / "all.safetensors");
  EXPECT_EQ(metadata.at("format"), "pt");
  EXPECT_EQ(metadata.at("note"), "ü \" \n");
  EXPECT_FALSE(fs::exists(folder / "all.safetensors.partial"));
}

TEST(Safetensors, TensorsOutliveTheMapAndTheFile) {
  const TempDir folder;
  write_safetensors(folder / "a.safetensors", {{"a", at::arange(100'000)}, {"b", at::zeros({10})}});
  Tensor a = open_safetensors(folder / "a.safetensors").at("a");
  fs::remove(folder / "a.safetensors");
  EXPECT_TRUE(at::equal(a, at::arange(100'000)));
}

TEST(Safetensors, WritingIntoATensorLeavesTheFileAlone) {
  const TempDir folder;
  write_safetensors(folder / "a.safetensors", {{"a", at::arange(10)}});
  Tensor a = open_safetensors(folder / "a.safetensors").at("a");
  a.zero_();
  EXPECT_TRUE(at::equal(open_safetensors(folder / "a.safetensors").at("a"), at::arange(10)));
}

TEST(Safetensors, CopiesWhatIsNotAligned) {
  const TempDir folder;
  const std::string header = R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}  )";
  ASSERT_EQ((8 + header.size()) % 8, 1u) << "the data are to start at an odd byte";
  const double values[] = {1.5, -2.25};
  const std::string data(reinterpret_cast<const char*>(values), sizeof(values));
  const auto a =
      open_safetensors(write(folder, "a.safetensors", little<uint64_t>(header.size()) + header + data))
          .at("a");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data_ptr()) % alignof(double), 0u);
  EXPECT_EQ(a[0].item<double>(), 1.5);
  EXPECT_EQ(a[1].item<double>(), -2.25);
}

// The size of a published 14B model; the data are a hole in a sparse file, so only what is touched takes
// space.
TEST(Safetensors, OpensALargeFileByItsHeaderAlone) {
  const TempDir folder;
  constexpr int64_t kTensors = 800, kRows = 3'418, kColumns = 5'120;
  std::string header = "{";
  for (int64_t i = 0; i < kTensors; ++i) {
    const int64_t bytes = kRows * kColumns * 2;
    header += concat(i ? "," : "", "\"blocks.", i, R"(.weight":{"dtype":"BF16","shape":[)", kRows, ",",
                     kColumns, R"(],"data_offsets":[)", i * bytes, ",", (i + 1) * bytes, "]}");
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const auto path = write(folder, "large.safetensors", safetensors(header, 0));
  const auto total = static_cast<off_t>(8 + header.size()) + kTensors * kRows * kColumns * 2;
  ASSERT_GT(total, 28'000'000'000);
  ASSERT_EQ(::truncate(path.c_str(), total), 0);

  const Stopwatch clock;
  const auto tensors = open_safetensors(path);
  EXPECT_LT(clock.seconds(), 1.0);
  ASSERT_EQ(tensors.size(), static_cast<size_t>(kTensors));
  EXPECT_EQ(tensors.at("blocks.799.weight")[kRows - 1][kColumns - 1].item<float>(), 0.f);
  RecordProperty("seconds", std::to_string(clock.seconds()));
}

TEST(Safetensors, RefusesBrokenHeaders) {
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7), "truncated");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9),
            "invalid_offsets");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8),
            "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", 8),
            "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8),
            "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8),
            "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", 8), "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", 8),
            "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":null,"shape":[2],"data_offsets":[0,8]}})", 8), "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":true})", 8), "invalid_header");
  EXPECT_EQ(code_of_header(R"({"__metadata__":{"a":1}})", 0), "invalid_header");
  EXPECT_EQ(code_of_header("", 0), "invalid_header");
  EXPECT_EQ(code_of_header(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})", 8),
            "invalid_shape");
  std::string dimensions = "1";
  for (int i = 0; i < 64; ++i) dimensions += ",1";
  EXPECT_EQ(code_of_header(
                concat(R"({"a":{"dtype":"F32","shape":[)", dimensions, R"(],"data_offsets":[0,4]}})"), 4),
            "invalid_shape");
}

TEST(Safetensors, MessagesNameFileTensorAndNumbers) {
  const TempDir folder;
  const auto path = write(folder, "a.safetensors",
                          safetensors(R"({"w\n":{"dtype":"F32","shape":[2,3],"data_offsets":[0,16]}})", 16));
  const auto error = error_of([&] { open_safetensors(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kCheckpoint);
  EXPECT_THAT(error.message(), HasSubstr(path));
  EXPECT_THAT(error.message(),
              HasSubstr("tensor w\\x0a: F32 [2, 3] needs 24 bytes, found data_offsets [0, 16]"));
}

TEST(Safetensors, RefusesWhatIsNoFile) {
  const TempDir folder;
  EXPECT_EQ(code_of([&] { open_safetensors(folder / "none.safetensors"); }), "missing_file");
  EXPECT_EQ(code_of([&] { open_safetensors(folder.path().string()); }), "missing_file");
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const TempDir folder;
  const auto path = folder / "a.safetensors";
  write_safetensors(path, {{"a", at::arange(4)}});
  // A limit on file size fails a write in the middle, as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto error = error_of([&] { write_safetensors(path, {{"a", at::zeros({100'000})}}); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_FALSE(fs::exists(path + ".partial"));
  EXPECT_TRUE(at::equal(open_safetensors(path).at("a"), at::arange(4)));
  EXPECT_EQ(error_of([&] { write_safetensors(folder / "none/a.safetensors", {}); }).kind(),
            ErrorKind::kResource);
}

TEST(SafetensorsIndex, JoinsShards) {
  const TempDir folder;
  write_safetensors(folder / "m-1.safetensors", {{"a", at::arange(2)}, {"unlisted", at::arange(5)}});
  write_safetensors(folder / "m-2.safetensors", {{"a", at::arange(9)}, {"b", at::arange(3)}});
  write(folder, "m.safetensors.index.json",
        R"({"metadata":{"total_size":1},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  const auto tensors = open_indexed(folder.path().string(), "m");
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("a").numel(), 2) << "the copy that the index names";
  EXPECT_EQ(tensors.at("b").numel(), 3);
  EXPECT_EQ(tensors.at("unlisted").numel(), 5) << "nothing is lost in silence";
}

TEST(SafetensorsIndex, RefusesBrokenIndexes) {
  const TempDir folder;
  write_safetensors(folder / "m-1.safetensors", {{"a", at::arange(2)}});
  const auto code = [&](std::string_view index) {
    write(folder, "m.safetensors.index.json", index);
    return code_of([&] { open_indexed(folder.path().string(), "m"); });
  };
  EXPECT_EQ(code(R"({"weight_map":{"a":"m-1.safetensors","a":"m-1.safetensors"}})"), "invalid_header");
  EXPECT_EQ(code(R"({"weight_map":{"a":1}})"), "invalid_header");
  EXPECT_EQ(code(R"({"weight_map":[]})"), "invalid_header");
  EXPECT_EQ(code(R"([])"), "invalid_header");
  EXPECT_EQ(code("{\"weight_map\":" + std::string(100'000, '[')), "invalid_header");
  EXPECT_EQ(code("{\"\xff\":1}"), "invalid_header");
  EXPECT_EQ(code("10e9000"), "invalid_header");
  EXPECT_EQ(code(R"({"weight_map":{"a":"/etc/passwd"}})"), "invalid_path");
  EXPECT_EQ(code(R"({"weight_map":{"a":".."}})"), "invalid_path");
  EXPECT_EQ(code(R"({"weight_map":{"a":""}})"), "invalid_path");
  EXPECT_EQ(code(R"({"weight_map":{"a":"m-1.safetensors","b":"m-1.safetensors"}})"), "missing_key");
  EXPECT_EQ(code(R"({"weight_map":{"a":"m-9.safetensors"}})"), "missing_file");
  EXPECT_EQ(code_of([&] { open_indexed(folder.path().string(), "other"); }), "missing_file");
}

}  // namespace
}  // namespace orrery::weights
