#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/media/frames.h"

// Pictures and clips from files. Paths are local files, whatever characters they have; a file never makes
// FFmpeg open another. Every failure is an Error of kind request that names the path and what was found:
// missing, unreadable, no picture in it, damaged, cut short, or larger than these limits. (Unsupported: a
// pixel format that cannot be converted.)
namespace orrery::media {

inline constexpr int64_t kMaxSide = 16384;
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;     // of one frame
inline constexpr int64_t kMaxClipBytes = int64_t{1} << 34;  // of the frames that are asked for

struct Info {
  int64_t width = 0, height = 0;
  std::optional<int64_t> frames;  // if the container says so without decoding
  double fps = 0;                 // 0 for pictures and folders
  bool is_image = false;          // a file with one picture
};

/// Which frames to return. `first` and `last` fail when there are fewer.
struct Selection {
  enum class Kind { kAll, kFirst, kLast } kind = Kind::kAll;
  int64_t count = 0;

  static Selection all() { return {}; }
  static Selection first(int64_t n) { return {Kind::kFirst, n}; }
  static Selection last(int64_t n) { return {Kind::kLast, n}; }
};

/// What a file or folder holds, from its header (folders: its first picture).
Info probe(const std::string& path);

/// A picture (PNG, JPEG, WebP and whatever else FFmpeg decodes), a video, or a folder of pictures of one size
/// in natural order of their names (2.png before 10.png), as RGB. Palette, grey, 16-bit and CMYK pictures are
/// converted, alpha is dropped; rotation tags (EXIF, display matrix), pixel aspect and frame rate are
/// ignored. A frame whose decoder reports damage is an error, not a gap (FFmpeg 5 conceals damaged FFV1
/// slices without a word). Holds at most the selected frames and a decoder's delay in memory.
Frames read_frames(const std::string& path, Selection selection = {});

/// The first picture of a file or folder, as read_frames reads it, but what alpha lets through is white (spec
/// cosmos-transfer2.5 §2.4).
Frames read_on_white(const std::string& path);

/// How many frames a file or folder has, found by decoding, at most `limit`. Errors as read_frames.
int64_t count_frames(const std::string& path, int64_t limit);

class Decoder;

/// Reads a long clip forward, part by part. Errors as read_frames; one thread at a time.
class FrameReader {
 public:
  explicit FrameReader(const std::string& path);
  ~FrameReader();
  FrameReader(FrameReader&&) noexcept;

  /// Frames [begin, end), fewer where the clip ends; they stay until the next call. begin ≥ the begin of the
  /// last call.
  const Frames& read(int64_t begin, int64_t end);

 private:
  std::string path_;
  std::vector<std::string> pictures_;  // of a folder
  std::unique_ptr<Decoder> decoder_;   // of a file
  int64_t decoded_ = 0;
  Frames kept_;
  int64_t kept_begin_ = 0;
};

/// The UTF-8 text that a PNG carries, by key (WriteOptions::text; PNG specification, §11.3.4). FFmpeg's
/// reader passes over it. Empty where there is none, and for other files.
std::map<std::string, std::string> read_text(const std::string& path);

}  // namespace orrery::media
