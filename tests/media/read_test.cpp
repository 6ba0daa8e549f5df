#include "orrery/media/read.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "orrery/media/write.h"
#include "tests/media/clips.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::media {
namespace {

namespace fs = std::filesystem;
using orrery::testing::expect_error;
using orrery::testing::TempDir;
using namespace media::testing;

/// Pictures that Pillow wrote, 13 × 9, and NAME.rgb: what Pillow's convert("RGB") makes of them (alpha cut
/// off, 16 bits to their high byte).
struct Picture {
  const char* name;
  int levels;  // how far decoders and chroma filters may differ
};

class Pictures : public ::testing::TestWithParam<Picture> {};

TEST_P(Pictures, AreConvertedToRgb) {
  const std::string path = std::string(ORRERY_SOURCE_DIR "/tests/media/data/") + GetParam().name;
  const std::string expected = bytes_of(path + ".rgb");
  EXPECT_LE(max_levels(read_frames(path), {1, 9, 13, {expected.begin(), expected.end()}}), GetParam().levels);
  const Info info = probe(path);
  EXPECT_TRUE(info.is_image);
  EXPECT_EQ(info.width, 13);
  EXPECT_EQ(info.height, 9);
  EXPECT_EQ(info.frames, 1);
}

INSTANTIATE_TEST_SUITE_P(Formats, Pictures,
                         ::testing::Values(Picture{"palette.png", 0}, Picture{"grey.png", 0},
                                           Picture{"bilevel.png", 0}, Picture{"alpha.png", 0},
                                           Picture{"grey_alpha.png", 0}, Picture{"grey16.png", 1},
                                           Picture{"444.jpg", 2}, Picture{"420.jpg", 8},
                                           Picture{"cmyk.jpg", 3}, Picture{"rotated.jpg", 2},
                                           Picture{"lossy.webp", 8}, Picture{"alpha.webp", 0},
                                           Picture{"picture.bmp", 0}, Picture{"picture.tif", 0}));

TEST(Read, OnWhite) {
  const std::string data = ORRERY_SOURCE_DIR "/tests/media/data/";
  EXPECT_EQ(read_on_white(data + "palette_alpha.png"),
            (Frames{1, 1, 3, {227, 132, 142, 255, 255, 255, 40, 50, 60}}));
  for (const char* opaque : {"palette.png", "grey.png", "picture.bmp", "444.jpg"})
    EXPECT_EQ(read_on_white(data + opaque), read_frames(data + opaque)) << opaque;
  for (const char* name : {"alpha.png", "alpha.webp", "grey_alpha.png"}) {
    const Frames white = read_on_white(data + name), dropped = read_frames(data + name);
    ASSERT_EQ(white.rgb.size(), dropped.rgb.size());
    EXPECT_NE(white, dropped) << name;
    for (size_t i = 0; i < white.rgb.size(); ++i)
      ASSERT_GE(white.rgb[i] + 1, dropped.rgb[i]) << name << ' ' << i;
  }
  EXPECT_THROW(read_on_white(data + "none.png"), Error);
}

TEST(FrameReader, ReadsForwardPartByPart) {
  TempDir dir;
  const Frames clip = waves(20, 34, 50);
  for (const std::string& path : {dir / "clip.mkv", dir / "frames/"}) {
    write_video(path, clip, 16);
    EXPECT_EQ(count_frames(path, 100), 20);
    EXPECT_EQ(count_frames(path, 7), 7);
    FrameReader reader(path);
    EXPECT_EQ(reader.read(2, 9), slice(clip, 2, 7));
    EXPECT_EQ(reader.read(7, 12), slice(clip, 7, 5)) << "two frames again";
    EXPECT_EQ(reader.read(12, 13), slice(clip, 12, 1));
    EXPECT_EQ(reader.read(12, 16), slice(clip, 12, 4)) << "the same frame again";
    EXPECT_EQ(reader.read(17, 30), slice(clip, 17, 3)) << "one left out, and beyond the end";
    EXPECT_EQ(reader.read(30, 40).count, 0);
    EXPECT_THROW(reader.read(0, 2), Error) << "backwards";
  }
}

TEST(Read, Selections) {
  TempDir dir;
  const Frames clip = waves(20, 34, 50);
  for (const std::string& path : {dir / "clip.mkv", dir / "frames/"}) {
    write_video(path, clip, 16);
    EXPECT_EQ(read_frames(path), clip);
    EXPECT_EQ(read_frames(path, Selection::first(3)), slice(clip, 0, 3));
    EXPECT_EQ(read_frames(path, Selection::last(5)), slice(clip, 15, 5));
    EXPECT_EQ(read_frames(path, Selection::last(20)), clip);
    expect_error(ErrorKind::kRequest, "has 20 frames; expected at least 21",
                 [&] { read_frames(path, Selection::last(21)); });
    expect_error(ErrorKind::kRequest, "has 20 frames; expected at least 21",
                 [&] { read_frames(path, Selection::first(21)); });
    expect_error(ErrorKind::kRequest, "positive number of frames, got 0",
                 [&] { read_frames(path, Selection::first(0)); });
  }
}

TEST(Read, ProbeReadsTheHeader) {
  TempDir dir;
  write_video(dir / "a.mp4", waves(7, 32, 48), 24);
  Info info = probe(dir / "a.mp4");
  EXPECT_EQ(info.width, 48);
  EXPECT_EQ(info.height, 32);
  EXPECT_EQ(info.frames, 7);
  EXPECT_DOUBLE_EQ(info.fps, 24);
  EXPECT_FALSE(info.is_image);

  write_video(dir / "frames/", waves(3, 8, 6), 24);
  info = probe(dir / "frames");
  EXPECT_EQ(info.width, 6);
  EXPECT_EQ(info.frames, 3);
  EXPECT_FALSE(info.is_image);
  EXPECT_EQ(info.fps, 0);
}

TEST(Read, FoldersAreInNaturalOrder) {
  TempDir dir;
  const Frames clip = waves(12, 8, 6);
  for (int64_t f = 0; f < 12; ++f)
    write_image(dir / concat("frame", f, f % 2 ? ".png" : ".PNG"), slice(clip, f, 1));
  write_bytes(dir / "notes.txt", "not a picture");
  EXPECT_EQ(read_frames(dir.path()), clip);

  write_image(dir / "frame12.png", waves(1, 8, 8));
  expect_error(ErrorKind::kRequest, "frame12.png is 8 × 8", [&] { read_frames(dir.path()); });
}

TEST(Read, NamesAreNamesOnly) {
  TempDir dir;
  const Frames picture = waves(1, 4, 4);
  for (const char* name : {"a%03d.png", "http:b.png", "*.png", "ünï [1].png", "-i.png"}) {
    write_image(dir / name, picture);
    EXPECT_EQ(read_frames(dir / name), picture) << name;
  }
}

TEST(Read, WhatIsNoPicture) {
  TempDir dir;
  const auto refused = [&](const std::string& name, const std::string& part) {
    expect_error(ErrorKind::kRequest, part, [&] { read_frames(dir / name); });
    expect_error(ErrorKind::kRequest, name, [&] { probe(dir / name); });
  };
  refused("absent.mp4", "No such file");
  write_bytes(dir / "text.mp4", "This is a text file that somebody renamed.\n");
  refused("text.mp4", "expected a PNG, JPEG or WebP picture");
  write_bytes(dir / "empty.png", "");
  refused("empty.png", "the file is empty");
  fs::create_directory(dir / "folder");
  write_bytes(dir / "folder/notes.txt", "x");
  refused("folder", "holds no pictures");
  expect_error(ErrorKind::kRequest, "neither a file nor a folder", [] { read_frames("/dev/null"); });
}

TEST(Read, AFileOpensNoOtherFile) {
  TempDir dir;
  write_video(dir / "clip.mp4", waves(2, 16, 16), 16);
  write_bytes(dir / "hls.mp4",
              "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n" + dir / "clip.mp4" + "\n#EXT-X-ENDLIST\n");
  write_bytes(dir / "concat.mp4", "ffconcat version 1.0\nfile clip.mp4\n");
  for (const char* name : {"hls.mp4", "concat.mp4"})
    expect_error(ErrorKind::kRequest, "cannot read", [&] { read_frames(dir / name); });
}

TEST(Read, CutShort) {
  TempDir dir;
  write_video(dir / "a.mp4", waves(24, 64, 64), 16);
  write_video(dir / "a.mkv", waves(24, 64, 64), 16);
  write_image(dir / "a.png", waves(1, 64, 64));
  write_image(dir / "a.jpg", waves(1, 64, 64));
  write_image(dir / "a.webp", waves(1, 64, 64));
  for (const std::string name : {"a.mp4", "a.mkv", "a.png", "a.jpg", "a.webp"}) {
    const std::string whole = bytes_of(dir / name);
    for (const size_t percent : {1, 10, 35, 60, 90}) {
      const std::string cut = "cut_" + name;
      write_bytes(dir / cut, whole.substr(0, whole.size() * percent / 100));
      expect_error(ErrorKind::kRequest, cut, [&] { read_frames(dir / cut); });
    }
  }
}

TEST(Read, DamageIsReported) {
  TempDir dir;
  write_video(dir / "a.mp4", waves(24, 64, 64), 16);
  write_image(dir / "a.png", waves(1, 64, 64));
  for (const std::string name : {"a.mp4", "a.png"}) {
    std::string bytes = bytes_of(dir / name);
    for (size_t i = bytes.size() / 3; i < bytes.size() / 3 + 64; ++i) bytes[i] = static_cast<char>(~bytes[i]);
    write_bytes(dir / name, bytes);
    expect_error(ErrorKind::kRequest, "damaged", [&] { read_frames(dir / name); });
  }
}

/// A PNG that claims this size and holds next to nothing. Checksums are not reached.
std::string boasting_png(uint32_t width, uint32_t height) {
  std::string bytes = bytes_of(ORRERY_SOURCE_DIR "/tests/media/data/grey.png");
  for (int i = 0; i < 4; ++i) {
    bytes[static_cast<size_t>(16 + i)] = static_cast<char>(width >> (24 - 8 * i));
    bytes[static_cast<size_t>(20 + i)] = static_cast<char>(height >> (24 - 8 * i));
  }
  return bytes;
}

TEST(Read, AbsurdSizesAreRefused) {
  TempDir dir;
  for (const auto& [width, height] :
       {std::pair<uint32_t, uint32_t>{2000000000, 2000000000}, {100000, 16}, {16384, 16384}, {0, 5}}) {
    write_bytes(dir / "boast.png", boasting_png(width, height));
    expect_error(ErrorKind::kRequest, "boast.png", [&] { read_frames(dir / "boast.png"); });
  }
}

TEST(Read, ColourMatrixAndRangeAreHonoured) {
  if (!has_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  TempDir dir;
  const Frames colour = flat(2, 32, 32, 200, 60, 30);
  write_video(dir / "in.mkv", colour, 16);
  for (const char* matrix : {"bt709", "smpte170m"})
    for (const char* range : {"tv", "pc"}) {
      ASSERT_TRUE(ffmpeg(concat("-i ", dir / "in.mkv", " -vf scale=out_color_matrix=", matrix,
                                ":out_range=", range, ",format=yuv420p -colorspace ", matrix,
                                " -color_range ", range, " -crf 1 ", dir / "out.mp4")));
      EXPECT_LE(max_levels(read_frames(dir / "out.mp4"), colour), 3) << matrix << " " << range;
    }
}

TEST(Read, OtherContainersAndCodecs) {
  if (!has_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  TempDir dir;
  const Frames clip = waves(12, 48, 64);
  write_video(dir / "in.mkv", clip, 16);
  for (const char* lossless : {"-c:v ffv1 out.avi", "-c:v png out.mov", "-c:v libx264rgb -qp 0 out.mp4"}) {
    ASSERT_TRUE(run(concat("cd ", dir.path().string(), " && ffmpeg -v error -y -i in.mkv ", lossless)));
    const std::string name = std::string(lossless).substr(std::string(lossless).rfind(' ') + 1);
    EXPECT_EQ(read_frames(dir / name), clip) << lossless;
  }
  for (const char* odd : {"-c:v mpeg4 -q:v 2 out.avi", "-c:v mjpeg -q:v 2 out.mov"}) {
    ASSERT_TRUE(run(concat("cd ", dir.path().string(),
                           " && ffmpeg -v error -y -i in.mkv -vf crop=63:47:0:0:exact=1 ", odd)));
    const std::string name = std::string(odd).substr(std::string(odd).rfind(' ') + 1);
    EXPECT_EQ(read_frames(dir / name).width, 63) << odd;
  }
  ASSERT_TRUE(ffmpeg("-f lavfi -i sine=d=1 " + dir / "sound.mp4"));
  expect_error(ErrorKind::kRequest, "has no video stream", [&] { read_frames(dir / "sound.mp4"); });
}

}  // namespace
}  // namespace orrery::media
