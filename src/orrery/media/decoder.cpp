#include "orrery/media/decoder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

extern "C" {
#include <libavutil/pixdesc.h>
}

#include "orrery/base/error.h"
#include "orrery/media/complete.h"

namespace orrery::media {
namespace {

constexpr const char* kLegal =
    "; expected a PNG, JPEG or WebP picture, an MP4, MOV, MKV, WebM or AVI video, or a folder of pictures";

void check_size(const std::string& path, int64_t width, int64_t height) {
  require(width > 0 && height > 0, "cannot read ", path,
          ": no picture in it decodes; it is damaged, cut short or has more than ", kMaxPixels, " pixels",
          kLegal);
  require(width <= kMaxSide && height <= kMaxSide && width * height <= kMaxPixels, path, " is ", width, " × ",
          height, " pixels; expected at most ", kMaxSide, " per side and ", kMaxPixels, " in all");
}

}  // namespace

Decoder::Decoder(const std::string& path) : path_(path) {
  quiet();
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require(fs::exists(status), "cannot read ", path, ": ", error ? error.message() : "it does not exist");
  require(fs::is_regular_file(status), "cannot read ", path, ": it is neither a file nor a folder", kLegal);
  int code = 0;
  io_ = open_file(path, AVIO_FLAG_READ, &code);
  require(io_ != nullptr, "cannot read ", path, ": ", reason(code));
  require(fs::file_size(path) > 0, "cannot read ", path, ": the file is empty", kLegal);
  require_complete(path);
  open_container();
  open_codec();
}

void Decoder::open_container() {
  AVFormatContext* container = avformat_alloc_context();
  if (!container) fail(ErrorKind::kResource, "media: out of memory");
  container->pb = io_.get();
  // A playlist or an external track in a hostile file would open other files and addresses: no protocol is
  // allowed. The empty name keeps the format a matter of content, and "%d" in a name from meaning a sequence.
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", "none", 0);
  int code = avformat_open_input(&container, "", nullptr, &options);
  av_dict_free(&options);
  require(code >= 0, "cannot read ", path_, ": ", reason(code), kLegal);
  container_.reset(container);

  // The limits hold for the decoders that look into the first frames, too.
  std::vector<AVDictionary*> limits(container->nb_streams, nullptr);
  for (auto& limit : limits) av_dict_set_int(&limit, "max_pixels", kMaxPixels, 0);
  code = avformat_find_stream_info(container, limits.data());
  for (auto& limit : limits) av_dict_free(&limit);
  require(code >= 0, "cannot read ", path_, ": ", reason(code), kLegal);

  const int index = av_find_best_stream(container, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  require(index >= 0 && !(container->streams[index]->disposition & AV_DISPOSITION_ATTACHED_PIC), path_,
          " has no video stream: it is ", container->iformat->long_name, kLegal);
  for (unsigned i = 0; i < container->nb_streams; ++i)
    if (static_cast<int>(i) != index) container->streams[i]->discard = AVDISCARD_ALL;
  stream_ = container->streams[index];

  const std::string_view format = container->iformat->name;
  info_.is_image = format.ends_with("_pipe");
  info_.width = stream_->codecpar->width;
  info_.height = stream_->codecpar->height;
  check_size(path_, info_.width, info_.height);
  if (info_.is_image)
    info_.frames = 1;
  else {
    if (stream_->nb_frames > 0) info_.frames = stream_->nb_frames;
    info_.fps = av_q2d(av_guess_frame_rate(container, stream_, nullptr));
  }
}

void Decoder::open_codec() {
  const AVCodecParameters& parameters = *stream_->codecpar;
  const AVCodec* codec = avcodec_find_decoder(parameters.codec_id);
  require(codec != nullptr, "cannot read ", path_, ": this FFmpeg has no decoder for ",
          avcodec_get_name(parameters.codec_id), kLegal);
  codec_ = own(avcodec_alloc_context3(codec));
  int code = avcodec_parameters_to_context(codec_.get(), &parameters);
  codec_->max_pixels = kMaxPixels;
  codec_->pkt_timebase = stream_->time_base;
  codec_->thread_count = info_.is_image ? 1 : 0;
  // Codecs without prediction between frames say at once when a frame is damaged, if asked. The others are
  // left to conceal what they can, because files in use have harmless flaws, and say so in the frame (check).
  const AVCodecDescriptor* kind = avcodec_descriptor_get(parameters.codec_id);
  const bool strict = kind && kind->props & AV_CODEC_PROP_INTRA_ONLY;
  if (strict &&
      parameters.codec_id != AV_CODEC_ID_TIFF)  // which would refuse every tag that it does not know
    codec_->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER;
  if (code >= 0) code = avcodec_open2(codec_.get(), codec, nullptr);
  require(code >= 0, "cannot read ", path_, ": the decoder ", codec->name, " does not start: ", reason(code));
}

void Decoder::check(const AVFrame& frame) {
  require(!(frame.flags & AV_FRAME_FLAG_CORRUPT) && frame.decode_error_flags == 0, path_,
          " is damaged or cut short: frame ", decoded_, " does not decode completely");
  if (decoded_ == 0) {
    check_size(path_, frame.width, frame.height);
    info_.width = frame.width, info_.height = frame.height;
  }
  require(frame.width == info_.width && frame.height == info_.height, path_, " changes its size: frame ",
          decoded_, " is ", frame.width, " × ", frame.height, ", the first one ", info_.width, " × ",
          info_.height);
}

Owned<AVFrame> Decoder::next() {
  if (info_.is_image && decoded_ == 1) return nullptr;
  auto frame = own(av_frame_alloc());
  for (;;) {
    const int code = avcodec_receive_frame(codec_.get(), frame.get());
    if (code == AVERROR_EOF) return nullptr;
    if (code == AVERROR(EAGAIN)) {
      feed();
      continue;
    }
    require(code >= 0, path_, " is damaged or cut short: frame ", decoded_,
            " does not decode: ", reason(code));
    check(*frame);
    ++decoded_;
    return frame;
  }
}

void Decoder::feed() {
  auto packet = own(av_packet_alloc());
  int code = 0;
  do {
    av_packet_unref(packet.get());
    code = av_read_frame(container_.get(), packet.get());
  } while (code >= 0 && packet->stream_index != stream_->index);
  if (code == AVERROR_EOF && io_->error < 0) code = io_->error;
  require(code >= 0 || code == AVERROR_EOF, "cannot read ", path_, " after frame ", decoded_, ": ",
          reason(code));
  require(code < 0 || !(packet->flags & AV_PKT_FLAG_CORRUPT), path_, " is damaged or cut short after frame ",
          decoded_);
  code = avcodec_send_packet(codec_.get(), code < 0 ? nullptr : packet.get());
  require(code >= 0 || code == AVERROR_EOF, path_, " is damaged or cut short: frame ", decoded_,
          " does not decode: ", reason(code));
}

}  // namespace orrery::media
