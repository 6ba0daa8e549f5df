#include "orrery/media/read.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <span>
#include <string_view>

#include "orrery/base/error.h"
#include "orrery/media/convert.h"
#include "orrery/media/decoder.h"

namespace orrery::media {
namespace {

namespace fs = std::filesystem;
using Kind = Selection::Kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Runs of digits compare as numbers, everything else as bytes.
bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [](std::string_view s, size_t& at) {
      while (at < s.size() && s[at] == '0') ++at;
      const size_t from = at;
      while (at < s.size() && is_digit(s[at])) ++at;
      return s.substr(from, at - from);
    };
    const std::string_view x = number(a, i), y = number(b, j);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // 1.png and 01.png
}

std::vector<std::string> pictures_in(const std::string& folder) {
  static constexpr std::string_view kExtensions[] = {".png", ".jpg", ".jpeg", ".webp",
                                                     ".bmp", ".tif", ".tiff", ".ppm"};
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string extension = entry->path().extension().string();
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::ranges::find(kExtensions, extension) != std::end(kExtensions))
      names.push_back(entry->path().filename().string());
  }
  require(!error, "cannot read the folder ", folder, ": ", error.message());
  require(!names.empty(), "the folder ", folder,
          " holds no pictures; expected 000000.png, 000001.png and so on (PNG, JPEG, "
          "WebP, BMP, TIFF or PPM)");
  std::ranges::sort(names, natural_less);
  for (auto& name : names) name = (fs::path(folder) / name).string();
  return names;
}

/// Grows a clip frame by frame and keeps it within kMaxClipBytes.
class Clip {
 public:
  Clip(const std::string& path, int64_t expected) : path_(path), expected_(expected) {}

  void add(const AVFrame& frame) {
    if (frames_.count == 0) {
      frames_.height = frame.height, frames_.width = frame.width;
      frames_.rgb.reserve(static_cast<size_t>(std::min(expected_ * frames_.frame_bytes(), kMaxClipBytes)));
    }
    require((frames_.count + 1) * frames_.frame_bytes() <= kMaxClipBytes, path_,
            " is too long: ", frames_.count + 1, " frames of ", frames_.width, " × ", frames_.height,
            " take more than ", kMaxClipBytes, " bytes; select fewer frames");
    frames_.rgb.resize(static_cast<size_t>((frames_.count + 1) * frames_.frame_bytes()));
    to_rgb_(frame, frames_.rgb.data() + frames_.count * frames_.frame_bytes());
    ++frames_.count;
  }

  /// Those of `frames` from number `begin` on.
  void add(const Frames& frames, int64_t begin) {
    if (begin == frames.count) return;
    frames_ = {frames.count - begin,
               frames.height,
               frames.width,
               {frames.rgb.begin() + begin * frames.frame_bytes(), frames.rgb.end()}};
  }

  int64_t count() const { return frames_.count; }
  Frames take() { return std::move(frames_); }

 private:
  std::string path_;
  int64_t expected_;
  ToRgb to_rgb_;
  Frames frames_;
};

void require_count(const std::string& path, const Selection& selection, int64_t found) {
  require(found > 0, path, " holds no frames");
  require(selection.kind == Kind::kAll || found >= selection.count, path, " has ", found,
          " frames; expected at least ", selection.count);
}

Frames read_file_frames(const std::string& path, const Selection& selection) {
  Decoder decoder(path);
  const bool last = selection.kind == Kind::kLast;
  // The count in a header is a hint that may lie; a long clip grows by itself.
  constexpr int64_t kMaxHint = 512;
  Clip clip(path, selection.kind == Kind::kAll ? std::min(decoder.info().frames.value_or(1), kMaxHint)
                                               : std::min(selection.count, kMaxHint));
  std::deque<Owned<AVFrame>> tail;
  const int64_t frame_bytes = decoder.info().width * decoder.info().height * 3;
  int64_t found = 0;
  while (selection.kind != Kind::kFirst || found < selection.count) {
    auto frame = decoder.next();
    if (!frame) break;
    ++found;
    if (!last) {
      clip.add(*frame);
      continue;
    }
    tail.push_back(std::move(frame));
    if (static_cast<int64_t>(tail.size()) > selection.count) tail.pop_front();
    require(static_cast<int64_t>(tail.size()) <= kMaxClipBytes / frame_bytes, path, ": the last ",
            selection.count, " frames take more than ", kMaxClipBytes, " bytes; select fewer frames");
  }
  require_count(path, selection, found);
  for (const auto& frame : tail) clip.add(*frame);
  return clip.take();
}

Frames read_pictures(const std::string& folder, std::span<const std::string> names) {
  Clip clip(folder, static_cast<int64_t>(names.size()));
  int64_t width = 0, height = 0;
  for (const auto& name : names) {
    Decoder decoder(name);
    const auto frame = decoder.next();
    require(frame != nullptr, name, " holds no picture");
    if (clip.count() == 0) width = frame->width, height = frame->height;
    require(frame->width == width && frame->height == height, name, " is ", frame->width, " × ",
            frame->height, ", but the folder began with ", width, " × ", height,
            "; expected pictures of one size");
    clip.add(*frame);
  }
  return clip.take();
}

Frames read_folder_frames(const std::string& folder, const Selection& selection) {
  std::vector<std::string> names = pictures_in(folder);
  const auto found = static_cast<int64_t>(names.size());
  require_count(folder, selection, found);
  if (selection.kind == Kind::kFirst) names.resize(static_cast<size_t>(selection.count));
  if (selection.kind == Kind::kLast) names.erase(names.begin(), names.end() - selection.count);
  return read_pictures(folder, names);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;  // the decoder reports it
  return fs::is_directory(path, ignored);
}

}  // namespace

Info probe(const std::string& path) {
  if (!is_folder(path)) return Decoder(path).info();
  const std::vector<std::string> names = pictures_in(path);
  Info info = Decoder(names.front()).info();
  info.frames = static_cast<int64_t>(names.size());
  info.is_image = false;
  info.fps = 0;
  return info;
}

Frames read_frames(const std::string& path, Selection selection) {
  require(selection.kind == Kind::kAll || selection.count > 0,
          "read_frames: expected a positive number of frames, got ", selection.count);
  try {
    return is_folder(path) ? read_folder_frames(path, selection) : read_file_frames(path, selection);
  } catch (Error& error) {
    throw error.with(concat("reading ", path));
  }
}

Frames read_on_white(const std::string& path) {
  try {
    Decoder decoder(is_folder(path) ? pictures_in(path).front() : path);
    const auto frame = decoder.next();
    require(frame != nullptr, path, " holds no frames");
    Frames picture{1, frame->height, frame->width, {}};
    picture.rgb.resize(static_cast<size_t>(picture.frame_bytes()));
    ToRgb(/*on_white=*/true)(*frame, picture.rgb.data());
    return picture;
  } catch (Error& error) {
    throw error.with(concat("reading ", path));
  }
}

int64_t count_frames(const std::string& path, int64_t limit) {
  if (is_folder(path)) return std::min(limit, static_cast<int64_t>(pictures_in(path).size()));
  Decoder decoder(path);
  int64_t count = 0;
  while (count < limit && decoder.next()) ++count;
  require(count > 0, path, " holds no frames");
  return count;
}

FrameReader::FrameReader(const std::string& path) : path_(path) {
  if (is_folder(path))
    pictures_ = pictures_in(path);
  else
    decoder_ = std::make_unique<Decoder>(path);
}

FrameReader::~FrameReader() = default;
FrameReader::FrameReader(FrameReader&&) noexcept = default;

const Frames& FrameReader::read(int64_t begin, int64_t end) {
  ensure(0 <= kept_begin_ && kept_begin_ <= begin && begin <= end, "FrameReader: frames ", begin, " to ", end,
         " after a read from ", kept_begin_);
  if (!decoder_) {
    const auto all = static_cast<int64_t>(pictures_.size()), first = std::min(begin, all);
    kept_begin_ = begin;
    kept_ =
        read_pictures(path_, std::span(pictures_).subspan(static_cast<size_t>(first),
                                                          static_cast<size_t>(std::min(end, all) - first)));
    return kept_;
  }
  Clip clip(path_, end - begin);
  const int64_t again = std::clamp(kept_begin_ + kept_.count - begin, int64_t{0}, kept_.count);
  clip.add(kept_, kept_.count - again);
  for (; decoded_ < end; ++decoded_) {
    const auto frame = decoder_->next();
    if (!frame) break;
    if (decoded_ >= begin) clip.add(*frame);
  }
  kept_ = clip.take();
  kept_begin_ = begin;
  return kept_;
}

}  // namespace orrery::media
