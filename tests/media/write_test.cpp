#include "orrery/media/write.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "orrery/media/read.h"
#include "tests/media/clips.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace orrery::media {
namespace {

namespace fs = std::filesystem;
using orrery::testing::expect_error;
using orrery::testing::TempDir;
using namespace media::testing;

int64_t entries(const TempDir& dir) { return std::distance(fs::directory_iterator(dir.path()), {}); }

TEST(Write, LosslessRoundTrips) {
  TempDir dir;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{32, 48}, {33, 47}, {16, 10}}) {
    const Frames clip = waves(5, height, width);
    write_video(dir / "a.mkv", clip, 16);
    EXPECT_EQ(read_frames(dir / "a.mkv"), clip);
    write_image(dir / "a.png", slice(clip, 2, 1));
    EXPECT_EQ(read_frames(dir / "a.png"), slice(clip, 2, 1));
  }
}

TEST(Write, H264IsCloseForEveryReader) {
  TempDir dir;
  const Frames clip = waves(33, 96, 160);
  write_video(dir / "a.mp4", clip, 16);
  EXPECT_GT(psnr(read_frames(dir / "a.mp4"), clip), 38);
  if (!has_ffmpeg()) GTEST_SKIP() << "no ffmpeg";
  ASSERT_TRUE(ffmpeg(concat("-i ", dir / "a.mp4", " -f rawvideo -pix_fmt rgb24 ", dir / "a.rgb")));
  const std::string raw = bytes_of(dir / "a.rgb");
  EXPECT_GT(psnr({33, 96, 160, {raw.begin(), raw.end()}}, clip), 36);
  ASSERT_TRUE(
      run(concat("ffprobe -v error -count_frames -select_streams v -show_entries "
                 "stream=codec_name,width,height,pix_fmt,r_frame_rate,nb_read_frames,duration -of csv=p=0 ",
                 dir / "a.mp4", " > ", dir / "probe")));
  EXPECT_EQ(bytes_of(dir / "probe"), "h264,160,96,yuv420p,16/1,2.062500,33\n");
}

TEST(Write, LowerCrfIsCloser) {
  TempDir dir;
  const Frames clip = waves(9, 64, 64);
  write_video(dir / "good.mp4", clip, 16, {.crf = 5});
  write_video(dir / "poor.mp4", clip, 16, {.crf = 45});
  EXPECT_GT(psnr(read_frames(dir / "good.mp4"), clip), psnr(read_frames(dir / "poor.mp4"), clip) + 6);
  EXPECT_GT(fs::file_size(dir / "good.mp4"), fs::file_size(dir / "poor.mp4"));
}

/// "Lavf59.27.100": the file would change with every release of FFmpeg.
bool names_a_version(const std::string& bytes) {
  for (size_t at = bytes.find("Lav"); at != std::string::npos; at = bytes.find("Lav", at + 1))
    if (at + 4 < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[at + 4]))) return true;
  return false;
}

TEST(Write, EqualFramesGiveEqualFiles) {
  TempDir dir;
  const Frames clip = waves(40, 64, 96), picture = slice(clip, 0, 1);
  for (const std::string end : {".mp4", ".mkv"}) {
    write_video(dir / "a" + end, clip, 16);
    write_video(dir / "b" + end, clip, 16);
    EXPECT_EQ(bytes_of(dir / "a" + end), bytes_of(dir / "b" + end)) << end;
    EXPECT_FALSE(names_a_version(bytes_of(dir / "a" + end))) << end;
  }
  for (const std::string end : {".png", ".jpg", ".webp"}) {
    write_image(dir / "a" + end, picture);
    write_image(dir / "b" + end, picture);
    EXPECT_EQ(bytes_of(dir / "a" + end), bytes_of(dir / "b" + end)) << end;
  }
}

TEST(Write, FrameByFrameEqualsAtOnce) {
  TempDir dir;
  const Frames clip = waves(6, 32, 32);
  write_video(dir / "whole.mp4", clip, 16);
  VideoWriter writer(dir / "parts.mp4", 32, 32, 16);
  for (int64_t f = 0; f < clip.count; ++f) writer.add(slice(clip, f, 1).rgb);
  EXPECT_FALSE(fs::exists(dir / "parts.mp4"));
  EXPECT_TRUE(fs::exists(dir / "parts.mp4.partial"));
  writer.finish();
  EXPECT_EQ(bytes_of(dir / "parts.mp4"), bytes_of(dir / "whole.mp4"));
  EXPECT_EQ(entries(dir), 2);
}

TEST(Write, LossyPictures) {
  TempDir dir;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{96, 128}, {95, 127}}) {
    const Frames picture = waves(1, height, width);
    for (const char* name : {"a.jpg", "a.jpeg", "a.webp"}) {
      write_image(dir / name, picture);
      const double good = psnr(read_frames(dir / name), picture);
      EXPECT_GT(good, 36) << name << " " << height;
      write_image(dir / name, picture, {.quality = 10});
      EXPECT_LT(psnr(read_frames(dir / name), picture), good - 3) << name << " " << height;
    }
  }
}

TEST(Write, FolderOfPictures) {
  TempDir dir;
  const Frames clip = waves(3, 5, 7);
  write_video(dir / "frames/", clip, 16);
  for (const char* name : {"000000.png", "000001.png", "000002.png"})
    EXPECT_TRUE(fs::exists(dir.path() / "frames" / name));
  EXPECT_EQ(read_frames(dir / "frames"), clip);
  expect_error(ErrorKind::kRequest, "new or empty folder", [&] { write_video(dir / "frames/", clip, 16); });
  fs::create_directory(dir / "empty");
  write_video(dir / "empty/", clip, 16);
  EXPECT_EQ(read_frames(dir / "empty"), clip);
  EXPECT_EQ(entries(dir), 2);
}

TEST(Write, TextIsKept) {
  TempDir dir;
  const Frames clip = waves(2, 32, 32), picture = slice(clip, 0, 1);
  const WriteOptions options{.text = {{"prompt", "a \"quoted\" prompt – ünï"}, {"seed", "7"}}};
  write_image(dir / "a.png", picture, options);
  EXPECT_NE(bytes_of(dir / "a.png").find("a \"quoted\" prompt – ünï"), std::string::npos);
  EXPECT_EQ(read_frames(dir / "a.png"), picture);  // checksums included
  EXPECT_EQ(read_text(dir / "a.png"),
            (std::map<std::string, std::string>{options.text.begin(), options.text.end()}));
  write_image(dir / "b.png", picture);
  EXPECT_TRUE(read_text(dir / "b.png").empty());
  std::string damaged = bytes_of(dir / "a.png");
  damaged[damaged.find("quoted")] = 'Q';
  write_bytes(dir / "c.png", damaged);
  expect_error(ErrorKind::kRequest, "checksum of a text differs", [&] { read_text(dir / "c.png"); });
  for (const size_t length : {size_t{8}, size_t{40}, damaged.size() - 20}) {
    write_bytes(dir / "d.png", bytes_of(dir / "a.png").substr(0, length));
    expect_error(ErrorKind::kRequest, "cut short", [&] { read_text(dir / "d.png"); });
  }
  expect_error(ErrorKind::kRequest, "cannot read", [&] { read_text(dir / "none.png"); });
  expect_error(ErrorKind::kRequest, "text is kept in", [&] { write_image(dir / "a.jpg", picture, options); });
  for (const std::string name : {"a.mp4", "a.mkv"}) {
    write_video(dir / name, clip, 16, options);
    EXPECT_NE(bytes_of(dir / name).find("a \"quoted\" prompt – ünï"), std::string::npos) << name;
    EXPECT_EQ(read_frames(dir / name).count, 2);
  }
}

TEST(Write, RefusedRequests) {
  TempDir dir;
  const Frames clip = waves(2, 33, 32), picture = slice(clip, 0, 1);
  const auto refused = [&](const std::string& part, auto call) {
    expect_error(ErrorKind::kRequest, part, call);
  };
  refused("unknown extension '.gif'; expected .mp4", [&] { output_kind(dir / "a.gif"); });
  refused("unknown extension ''", [&] { output_kind(dir / "name"); });
  refused("needs even sides, got 32 × 33", [&] { write_video(dir / "a.mp4", clip, 16); });
  refused("expected one frame, got 2", [&] { write_image(dir / "a.png", clip); });
  refused("cannot write a video to", [&] { write_video(dir / "a.png", clip, 16); });
  refused("cannot write a picture to", [&] { write_image(dir / "a.mkv", picture); });
  refused("0 < fps", [&] { write_video(dir / "a.mkv", clip, 0); });
  refused("crf of 0 to 51, got 52", [&] { write_video(dir / "a.mkv", clip, 16, {.crf = 52}); });
  refused("quality of 1 to 100, got 0", [&] { write_image(dir / "a.jpg", picture, {.quality = 0}); });
  refused("expected sides of 1", [&] { VideoWriter(dir / "a.mkv", 0, 32, 16); });
  refused("expected sides of 1", [&] { VideoWriter(dir / "a.mkv", 32, int64_t{1} << 40, 16); });
  refused("at least one frame", [&] { VideoWriter(dir / "a.mp4", 32, 32, 16).finish(); });
  refused("a frame of 3072 bytes, got 9",
          [&] { VideoWriter(dir / "a.mp4", 32, 32, 16).add(std::vector<uint8_t>(9)); });
  EXPECT_EQ(entries(dir), 0);
}

TEST(Write, UnwritablePlaces) {
  TempDir dir;
  const Frames clip = waves(2, 32, 32), picture = slice(clip, 0, 1);
  for (const char* name : {"absent/a.mp4", "absent/a.mkv", "absent/frames/"})
    expect_error(ErrorKind::kResource, concat("cannot write ", dir / "absent"),
                 [&] { write_video(dir / name, clip, 16); });
  expect_error(ErrorKind::kResource, "absent/a.png: No such file",
               [&] { write_image(dir / "absent/a.png", picture); });
  fs::create_directories(dir / "taken.mp4/inside");
  expect_error(ErrorKind::kResource, "taken.mp4", [&] { write_video(dir / "taken.mp4", clip, 16); });
  EXPECT_EQ(entries(dir), 1);
}

/// No file may grow beyond `bytes` while this lives: what a full disk looks like from inside.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(Write, FullDiskLeavesNothingNew) {
  TempDir dir;
  const Frames clip = waves(60, 96, 96);
  for (const std::string name : {"a.mp4", "a.mkv", "frames/"})
    for (const rlim_t room : {rlim_t{0}, rlim_t{1000}}) {
      const FullDisk full(room);
      expect_error(ErrorKind::kResource, "cannot write", [&] { write_video(dir / name, clip, 16); });
    }
  EXPECT_EQ(entries(dir), 0);
  write_bytes(dir / "a.png", "before");
  {
    const FullDisk full(1000);
    expect_error(ErrorKind::kResource, "a.png", [&] { write_image(dir / "a.png", slice(clip, 0, 1)); });
  }
  EXPECT_EQ(bytes_of(dir / "a.png"), "before");
  EXPECT_EQ(entries(dir), 1);
}

}  // namespace
}  // namespace orrery::media
