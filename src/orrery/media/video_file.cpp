#include <cmath>

extern "C" {
#include <libavutil/opt.h>
}

#include "orrery/base/error.h"
#include "orrery/media/encoder.h"

namespace orrery::media {
namespace {

// The number of threads is part of what x264 and FFV1 (its slices) produce: it is a constant, not the
// machine's.
constexpr int kThreads = 4;

}  // namespace

VideoFile::VideoFile(Format format, const std::string& path, int64_t height, int64_t width, double fps,
                     const WriteOptions& options)
    : path_(path) {
  quiet();
  int code = 0;
  io_ = open_file(path, AVIO_FLAG_WRITE, &code);
  check(code);
  AVFormatContext* container = nullptr;
  avformat_alloc_output_context2(&container, nullptr, format == Format::kMp4 ? "mp4" : "matroska", nullptr);
  if (!container) fail(ErrorKind::kUnsupported, "this FFmpeg writes neither MP4 nor Matroska: ", path);
  container_.reset(container);
  container->pb = io_.get();
  container->flags |= AVFMT_FLAG_BITEXACT;  // no times, random identifiers or library versions
  for (const auto& [key, value] : options.text)
    av_dict_set(&container->metadata, key.c_str(), value.c_str(), 0);
  open_codec(format, height, width, fps, options);

  AVStream* stream = avformat_new_stream(container, nullptr);
  if (!stream) fail(ErrorKind::kResource, "media: out of memory");
  stream->time_base = codec_->time_base;
  stream->avg_frame_rate = stream->r_frame_rate = codec_->framerate;
  check(avcodec_parameters_from_context(stream->codecpar, codec_.get()));
  AVDictionary* muxer = nullptr;
  // Keys that QuickTime has no name for need it.
  if (format == Format::kMp4 && !options.text.empty())
    av_dict_set(&muxer, "movflags", "use_metadata_tags", 0);
  code = avformat_write_header(container, &muxer);
  av_dict_free(&muxer);
  check(code);
}

void VideoFile::open_codec(Format format, int64_t height, int64_t width, double fps,
                           const WriteOptions& options) {
  const bool h264 = format == Format::kMp4;
  const char* name = h264 ? "libx264" : "ffv1";
  const AVCodec* encoder = avcodec_find_encoder_by_name(name);
  if (!encoder) fail(ErrorKind::kUnsupported, "cannot write ", path_, ": this FFmpeg has no encoder ", name);
  codec_ = own(avcodec_alloc_context3(encoder));
  codec_->width = static_cast<int>(width);
  codec_->height = static_cast<int>(height);
  codec_->framerate = av_d2q(fps, 100000);
  codec_->time_base = av_inv_q(codec_->framerate);
  codec_->sample_aspect_ratio = {1, 1};
  codec_->pix_fmt = h264 ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_0RGB32;
  codec_->thread_count = kThreads;
  codec_->flags |= AV_CODEC_FLAG_BITEXACT;
  if (container_->oformat->flags & AVFMT_GLOBALHEADER) codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (h264) {
    // BT.601, and said so: right for players that read the tag and for the many readers that assume it.
    codec_->colorspace = AVCOL_SPC_SMPTE170M;
    codec_->color_primaries = AVCOL_PRI_BT709;
    codec_->color_trc = AVCOL_TRC_BT709;
    codec_->color_range = AVCOL_RANGE_MPEG;
    check(av_opt_set(codec_->priv_data, "preset", "medium", 0));
    check(av_opt_set_double(codec_->priv_data, "crf", static_cast<double>(options.crf), 0));
    // Otherwise x264 chooses some algorithms by the processor's vector width.
    check(av_opt_set(codec_->priv_data, "x264-params", "cpu-independent=1", 0));
  } else {
    codec_->level = 3;
    codec_->slices = kThreads;
    check(av_opt_set(codec_->priv_data, "slicecrc", "1", 0));  // for readers that look at it
  }
  const int code = avcodec_open2(codec_.get(), encoder, nullptr);
  require(code >= 0, "cannot write ", path_, ": the encoder ", name, " refuses ", width, " × ", height,
          " at ", fps, " frames per second: ", reason(code));
  from_rgb_ = std::make_unique<FromRgb>(height, width, codec_->pix_fmt, false);
}

void VideoFile::add(std::span<const uint8_t> rgb) {
  AVFrame* frame = (*from_rgb_)(rgb);
  frame->pts = frames_++;
  encode(frame);
}

void VideoFile::encode(const AVFrame* frame) {
  check(avcodec_send_frame(codec_.get(), frame));
  auto packet = own(av_packet_alloc());
  const AVStream* stream = container_->streams[0];
  for (;;) {
    const int code = avcodec_receive_packet(codec_.get(), packet.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
    check(code);
    packet->duration = 1;
    av_packet_rescale_ts(packet.get(), codec_->time_base, stream->time_base);
    packet->stream_index = 0;
    check(av_interleaved_write_frame(container_.get(), packet.get()));
  }
}

void VideoFile::finish() {
  encode(nullptr);
  check(av_write_trailer(container_.get()));
  avio_flush(io_.get());
  check(io_->error);
  check(avio_close(io_.release()));
}

void VideoFile::check(int code) const {
  if (code < 0) fail(ErrorKind::kResource, "cannot write ", path_, ": ", reason(code));
}

}  // namespace orrery::media
