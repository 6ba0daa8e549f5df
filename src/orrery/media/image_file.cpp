#include <algorithm>
#include <array>
#include <optional>

extern "C" {
#include <libavutil/opt.h>
}

#include "orrery/base/error.h"
#include "orrery/media/encoder.h"
#include "orrery/media/png_text.h"

namespace orrery::media {
namespace {

// Annex K of the JPEG standard, in natural order; libjpeg scales these tables by its quality.
constexpr std::array<uint16_t, 64> kLuma = {
    16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
    69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
    81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99};
constexpr std::array<uint16_t, 64> kChroma = {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
                                              24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
                                              99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                              99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

/// libjpeg's tables for a quality (jpeg_quality_scaling, jpeg_add_quant_table), lent to a codec context for
/// as long as this lives: releases of FFmpeg differ in which of the two the context frees.
class QualityTables {
 public:
  QualityTables(AVCodecContext* codec, int64_t quality) : codec_(codec) {
    const int64_t percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    const auto scaled = [&](uint16_t base) {
      return static_cast<uint16_t>(std::clamp<int64_t>((base * percent + 50) / 100, 1, 255));
    };
    std::ranges::transform(kLuma, luma_.begin(), scaled);
    std::ranges::transform(kChroma, chroma_.begin(), scaled);
    codec_->intra_matrix = luma_.data();
    codec_->chroma_intra_matrix = chroma_.data();
    // mjpeg's table is matrix · qscale / 8.
    codec_->flags |= AV_CODEC_FLAG_QSCALE;
    codec_->global_quality = 8 * FF_QP2LAMBDA;
    codec_->color_range = AVCOL_RANGE_JPEG;
  }
  ~QualityTables() { codec_->intra_matrix = codec_->chroma_intra_matrix = nullptr; }
  QualityTables(const QualityTables&) = delete;
  QualityTables& operator=(const QualityTables&) = delete;

 private:
  AVCodecContext* codec_;
  std::array<uint16_t, 64> luma_, chroma_;
};

struct Encoding {
  const char* encoder;
  AVPixelFormat pixels;
};

Encoding encoding(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return {"png", AV_PIX_FMT_RGB24};
    case ImageFormat::kJpeg:
      return {"mjpeg", AV_PIX_FMT_YUVJ420P};
    case ImageFormat::kWebp:
      break;
  }
  return {"libwebp", AV_PIX_FMT_BGRA};  // libwebp converts to YUV itself, better than 4:2:0 from here
}

}  // namespace

std::string encode_image(ImageFormat format, std::span<const uint8_t> rgb, int64_t height, int64_t width,
                         const WriteOptions& options) {
  quiet();
  const auto [name, pixels] = encoding(format);
  const AVCodec* encoder = avcodec_find_encoder_by_name(name);
  if (!encoder) fail(ErrorKind::kUnsupported, "this FFmpeg has no encoder ", name);
  auto codec = own(avcodec_alloc_context3(encoder));
  codec->width = static_cast<int>(width);
  codec->height = static_cast<int>(height);
  codec->time_base = {1, 1};
  codec->sample_aspect_ratio = {1, 1};
  codec->pix_fmt = pixels;
  codec->thread_count = 1;
  codec->flags |= AV_CODEC_FLAG_BITEXACT;
  std::optional<QualityTables> tables;  // destroyed before the codec
  if (format == ImageFormat::kPng) av_opt_set(codec->priv_data, "pred", "mixed", 0);
  if (format == ImageFormat::kJpeg) tables.emplace(codec.get(), options.quality);
  if (format == ImageFormat::kWebp)
    av_opt_set_double(codec->priv_data, "quality", static_cast<double>(options.quality), 0);
  int code = avcodec_open2(codec.get(), encoder, nullptr);
  require(code >= 0, "the encoder ", name, " refuses a picture of ", width, " × ", height, ": ",
          reason(code));

  FromRgb from_rgb(height, width, pixels, true);
  AVFrame* frame = from_rgb(rgb);
  frame->pts = 0;
  frame->quality = codec->global_quality;
  auto packet = own(av_packet_alloc());
  code = avcodec_send_frame(codec.get(), frame);
  if (code >= 0) code = avcodec_send_frame(codec.get(), nullptr);
  if (code >= 0) code = avcodec_receive_packet(codec.get(), packet.get());
  ensure(code >= 0, "the encoder ", name, " fails: ", reason(code));

  std::string bytes(reinterpret_cast<const char*>(packet->data), static_cast<size_t>(packet->size));
  if (format == ImageFormat::kPng) {
    constexpr size_t kAfterHeader = 8 + 25;  // signature, IHDR
    std::string text;
    for (const auto& [key, value] : options.text) text += text_chunk(key, value);
    bytes.insert(kAfterHeader, text);
  }
  return bytes;
}

}  // namespace orrery::media
