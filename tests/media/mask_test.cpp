#include "orrery/media/mask.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "orrery/base/error.h"
#include "orrery/media/npy_header.h"
#include "orrery/media/write.h"
#include "tests/media/clips.h"
#include "tests/media/pictures.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::media {
namespace {

using orrery::testing::expect_error;
using orrery::testing::TempDir;
using testing::bytes_of;
using testing::flat;
using testing::photograph;
using testing::write_bytes;

std::string data(const std::string& name) { return ORRERY_SOURCE_DIR "/tests/media/data/" + name; }

/// What numpy wrote into labels*: (frame + y // 3 + x // 4) % 4 − 1, three frames of 9 × 13.
template <class Foreground>
Mask labels_where(Foreground foreground) {
  Mask mask{3, 9, 13, {}};
  for (int64_t f = 0; f < 3; ++f)
    for (int64_t y = 0; y < 9; ++y)
      for (int64_t x = 0; x < 13; ++x)
        mask.levels.push_back(foreground((f + y / 3 + x / 4) % 4 - 1) ? 255 : 0);
  return mask;
}

/// An array file: numpy's layout, written out.
std::string npy(const std::string& descr, const std::string& shape, const std::string& numbers,
                const std::string& fortran = "False") {
  std::string header =
      concat("{'descr': '", descr, "', 'fortran_order': ", fortran, ", 'shape': ", shape, ", }");
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 255);
  start += static_cast<char>(header.size() >> 8);
  return start + header + numbers;
}

template <class Number>
std::string bytes(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}

Mask read_bytes(const std::string& content, std::span<const int64_t> foreground = {}) {
  const TempDir dir;
  write_bytes(dir / "mask.npy", content);
  return read_mask(dir / "mask.npy", foreground);
}

/// The file is refused with a text that holds `part`, and its name.
void refused(const std::string& content, const std::string& part, const std::string& name = "bad.npy") {
  const TempDir dir;
  write_bytes(dir / name, content);
  expect_error(ErrorKind::kRequest, part, [&] { read_mask(dir / name); });
  expect_error(ErrorKind::kRequest, name, [&] { read_mask(dir / name); });
}

TEST(Mask, ReadsWhatNumpyWrites) {
  const int64_t some[] = {2, -1}, none[] = {77};
  for (const char* name : {"labels.npz", "labels_plain.npz", "labels.npy"}) {
    EXPECT_EQ(read_mask(data(name)), labels_where([](int64_t v) { return v != 0; })) << name;
    EXPECT_EQ(read_mask(data(name), some), labels_where([](int64_t v) { return v == 2 || v == -1; })) << name;
    EXPECT_EQ(read_mask(data(name), none), labels_where([](int64_t) { return false; })) << name;
  }
}

TEST(Mask, EveryTypeOfNumber) {
  const int64_t last[] = {-1};
  const auto expect = [&](const std::string& descr, const std::string& numbers, bool is_signed) {
    SCOPED_TRACE(descr);
    const std::string content = npy(descr, "(1, 2, 2)", numbers);
    EXPECT_EQ(read_bytes(content), (Mask{1, 2, 2, {0, 255, 255, 255}}));
    const uint8_t minus_one = is_signed ? 255 : 0;
    EXPECT_EQ(read_bytes(content, last), (Mask{1, 2, 2, {0, 0, minus_one, 0}}));
  };
  expect("|b1", bytes<uint8_t>({0, 1, 1, 1}), false);
  expect("|u1", bytes<uint8_t>({0, 1, 255, 7}), false);
  expect("|i1", bytes<int8_t>({0, 1, -1, 7}), true);
  expect("<u2", bytes<uint16_t>({0, 256, 65535, 7}), false);
  expect("<i2", bytes<int16_t>({0, 256, -1, 7}), true);
  expect("<u4", bytes<uint32_t>({0, 1u << 31, UINT32_MAX, 7}), false);
  expect("<i4", bytes<int32_t>({0, 1 << 30, -1, 7}), true);
  expect("<u8", bytes<uint64_t>({0, uint64_t{1} << 63, UINT64_MAX, 7}), false);
  expect("<i8", bytes<int64_t>({0, int64_t{1} << 62, -1, 7}), true);
}

TEST(Mask, TwoDimensionsAreOneFrame) {
  EXPECT_EQ(read_bytes(npy("|u1", "(2, 3)", bytes<uint8_t>({0, 1, 2, 3, 0, 0}))),
            (Mask{1, 2, 3, {0, 255, 255, 255, 0, 0}}));
}

TEST(Mask, PicturesAndVideosGiveTheirFirstChannel) {
  const TempDir dir;
  const Frames clip = photograph(3, 16, 20);
  write_video(dir / "mask.mkv", clip, 16);
  write_image(dir / "mask.png", flat(1, 5, 4, 200, 0, 255));
  const Mask mask = read_mask(dir / "mask.mkv");
  ASSERT_EQ(mask.levels.size() * 3, clip.rgb.size());
  for (size_t i = 0; i < mask.levels.size(); ++i) ASSERT_EQ(mask.levels[i], clip.rgb[3 * i]);
  EXPECT_EQ(read_mask(dir / "mask.png"), (Mask{1, 5, 4, std::vector<uint8_t>(20, 200)}));
  const int64_t labels[] = {1};
  expect_error(ErrorKind::kRequest, "foreground labels are for arrays of labels (.npz, .npy)",
               [&] { read_mask(dir / "mask.png", labels); });
}

TEST(Mask, BinaryIsAbove127AndAHalf) {
  EXPECT_EQ(binary({1, 1, 4, {0, 127, 128, 255}}), (Mask{1, 1, 4, {0, 0, 255, 255}}));
}

TEST(Mask, ArraysOfOtherTypes) {
  const std::string legal = "expected integers or booleans, one of |b1 |u1 |i1 <u2 <i2 <u4 <i4 <u8 <i8";
  for (const char* descr : {"<f4", "<f2", ">i4", "|O", "<U3", "<c8", "|V8", "<i16"})
    refused(npy(descr, "(1, 1, 1)", std::string(16, '\0')), concat("type ", descr, "; ", legal));
  refused(npy("\x1b[31m\n", "(1, 1, 1)", "x"), "type ?[31m?; expected");
  refused(npy("|u1", "(1, 1, 1)", "x", "True"), "Fortran order; expected C order (numpy.ascontiguousarray)");
}

TEST(Mask, ArraysOfOtherShapes) {
  refused(npy("|u1", "()", "x"), "expected an array [frames, height, width] or [height, width], found []");
  refused(npy("|u1", "(4,)", "abcd"), "found [4]");
  refused(npy("|u1", "(1, 1, 2, 2)", "abcd"), "found [1, 1, 2, 2]");
  refused(npy("|u1", "(0, 2, 2)", ""), "its array [0, 2, 2] is empty");
  refused(npy("|u1", "(1, 1, 16385)", ""),
          "[1, 1, 16385] is too large; expected at most 16384 pixels per side");
  refused(npy("|u1", "(1, 16384, 16384)", ""), "is too large");
  refused(npy("|u1", "(9223372036854775807, 8, 8)", ""), "is too large");
  refused(npy("|u1", "(9223372036854775808, 8, 8)", ""), "its array header is damaged");
  refused(npy("|u1", "(-1, 8, 8)", ""), "its array header is damaged");
  refused(npy("|u1", "(17179869184, 1, 1)", "short"), "its array is cut short");
}

TEST(Mask, DamagedHeaders) {
  const std::string whole = npy("|u1", "(1, 2, 2)", "abcd");
  for (size_t length = 0; length < whole.size(); ++length) refused(whole.substr(0, length), "cannot read");
  refused(whole + "e", "it holds more than its array");
  refused("", "its array is cut short");
  refused("PNG" + whole, "it does not begin as an array of numpy.save does");
  std::string other = whole;
  other[6] = 9;
  refused(other, "format version 9; expected 1 to 3");
  other = whole, other[8] = other[9] = '\xff';
  refused(other, "its array header has 65535 bytes; expected at most 10000");
  other = whole, other[6] = 2;  // the length has four bytes there
  refused(other, "expected at most 10000");
  for (const char* text :
       {"", "{", "{}", "{'descr': '|u1'}", "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (1, 2, 2)}",
        "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2), 'more': 1}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2)} x",
        "{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (1, 2, 2)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (,)}"})
    expect_error(ErrorKind::kRequest, "cannot read P: its array header is damaged; expected {'descr': '|u1'",
                 [&] { parse_npy_header(text, "P"); });
  EXPECT_EQ(parse_npy_header("{\"shape\":(7,),'fortran_order':False,'descr':'<i2'}", "P").shape,
            std::vector<int64_t>{7});
}

TEST(Mask, Archives) {
  refused("no archive", "; expected an archive of numpy.savez", "bad.npz");
  expect_error(ErrorKind::kRequest,
               "expected an array arr_0, as numpy.savez(path, mask) names it; found mask.npy, depth.npy",
               [] { read_mask(data("labels_named.npz")); });
  const std::string whole = bytes_of(data("labels_plain.npz"));
  for (size_t length = 0; length < whole.size(); length += 7)
    refused(whole.substr(0, length), "cannot read", "cut.npz");
  // A damaged number is found by the checksum.
  std::string damaged = whole;
  damaged[damaged.find("NUMPY") + 200] ^= 1;
  refused(damaged, "its array arr_0 is damaged: CRC error", "damaged.npz");
  std::string packed = bytes_of(data("labels.npz"));
  packed[packed.find("arr_0.npy") + 60] ^= 0x55;
  refused(packed, "cannot read", "damaged.npz");
}

TEST(Mask, RandomDamage) {
  const TempDir dir;
  std::mt19937 generator(11);
  int refusals = 0;
  for (const char* name : {"labels.npz", "labels_plain.npz", "labels.npy"}) {
    const std::string whole = bytes_of(data(name));
    for (int round = 0; round < 200; ++round) {
      std::string damaged = whole;
      for (int i = 0; i < 3; ++i) damaged[generator() % damaged.size()] = static_cast<char>(generator());
      write_bytes(dir / name, damaged);
      try {
        EXPECT_EQ(read_mask(dir / name).frame_bytes() % 9, 0);
      } catch (const Error& error) {
        EXPECT_EQ(to_string(error.kind()), "request") << error.what();
        ++refusals;
      }
    }
  }
  EXPECT_GT(refusals, 300);
}

TEST(Mask, FilesThatAreNone) {
  const TempDir dir;
  for (const char* name : {"a.npz", "a.npy", "a.NPZ", "a.mp4"})
    expect_error(ErrorKind::kRequest, concat(name, ": No such file"), [&] { read_mask(dir / name); });
  std::filesystem::create_directory(dir / "folder.npz");
  expect_error(ErrorKind::kRequest, "folder.npz: it is no file", [&] { read_mask(dir / "folder.npz"); });
}

}  // namespace
}  // namespace orrery::media
