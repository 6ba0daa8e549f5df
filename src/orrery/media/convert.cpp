#include "orrery/media/convert.h"

#include <algorithm>
#include <cstring>

extern "C" {
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include "orrery/base/error.h"

namespace orrery::media {
namespace {

// Bicubic is for the chroma planes alone; swscale's bilinear leaves out the vertical direction.
constexpr int kFlags =
    SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT;
constexpr int kUnit = 1 << 16;  // contrast and saturation, 16.16 fixed point
constexpr size_t kChannels = 3;
constexpr size_t kAlphaChannels = 4;

/// swscale's vector code reads and writes past the end of a row: its buffers are FFmpeg's own, aligned and
/// padded.
Owned<AVFrame> make_frame(int width, int height, int format) {
  auto frame = own(av_frame_alloc());
  frame->width = width;
  frame->height = height;
  frame->format = format;
  if (const int code = av_frame_get_buffer(frame.get(), 64); code < 0)
    fail(ErrorKind::kResource, "media: no memory for a frame of ", width, " × ", height, ": ", reason(code));
  return frame;
}

/// The yuvj formats are the yuv formats with full range under a deprecated name.
AVPixelFormat without_j(AVPixelFormat format) {
  switch (format) {
    case AV_PIX_FMT_YUVJ411P:
      return AV_PIX_FMT_YUV411P;
    case AV_PIX_FMT_YUVJ420P:
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ440P:
      return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ444P:
      return AV_PIX_FMT_YUV444P;
    default:
      return format;
  }
}

int full_range(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  return format != without_j(format) || frame.color_range == AVCOL_RANGE_JPEG;
}

struct Size {
  int height, width;
};

/// Height and width in whole chroma samples. swscale takes the 161 chroma samples of 321 pixels for a plane
/// to be stretched by 321/161 instead of 2; with padding it does not.
Size padded(int height, int width, AVPixelFormat format) {
  const AVPixFmtDescriptor* layout = av_pix_fmt_desc_get(format);
  const auto up = [](int size, int log2) { return (size + (1 << log2) - 1) >> log2 << log2; };
  return {up(height, layout->log2_chroma_h), up(width, layout->log2_chroma_w)};
}

/// One row of RGBA as it looks on white. The order of the roundings is the reference's.
void blend_with_white(const uint8_t* rgba, int width, uint8_t* rgb) {
  constexpr double kWhite = 255;
  for (int x = 0; x < width; ++x, rgba += kAlphaChannels, rgb += kChannels) {
    const double alpha = rgba[kChannels] / kWhite;
    for (size_t c = 0; c < kChannels; ++c)
      rgb[c] = static_cast<uint8_t>(rgba[c] * alpha + kWhite * (1 - alpha));
  }
}

}  // namespace

void ToRgb::prepare(const AVFrame& frame) {
  const auto stored = static_cast<AVPixelFormat>(frame.format);
  if (!sws_isSupportedInput(without_j(stored)))
    fail(ErrorKind::kUnsupported, "pixel format ", av_get_pix_fmt_name(stored),
         " cannot be converted to RGB");
  width_ = frame.width, height_ = frame.height, format_ = frame.format;
  space_ = frame.colorspace, full_ = full_range(frame);
  const Size size = padded(height_, width_, stored);
  const auto format = on_white_ ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;  // opaque where there is no alpha
  sws_ = own(sws_getContext(size.width, size.height, without_j(stored), size.width, size.height, format,
                            kFlags, nullptr, nullptr, nullptr));
  const int* coefficients = sws_getCoefficients(space_);
  // Answers −1 where there is no YUV on either side, and nothing to set.
  sws_setColorspaceDetails(sws_.get(), coefficients, full_, coefficients, 1, 0, kUnit, kUnit);
  out_ = make_frame(size.width, size.height, format);
  const bool whole = size.width == width_ && size.height == height_;
  whole_ = whole ? nullptr : make_frame(size.width, size.height, format_);
}

void ToRgb::operator()(const AVFrame& frame, uint8_t* rgb) {
  if (width_ != frame.width || height_ != frame.height || format_ != frame.format ||
      space_ != frame.colorspace || full_ != full_range(frame))
    prepare(frame);
  const AVFrame* in = &frame;
  if (whole_) {
    // The padding itself stays as it is: nothing of it reaches the pixels that are kept.
    av_image_copy(whole_->data, whole_->linesize, const_cast<const uint8_t**>(frame.data), frame.linesize,
                  static_cast<AVPixelFormat>(format_), width_, height_);
    in = whole_.get();
  }
  sws_scale(sws_.get(), in->data, in->linesize, 0, in->height, out_->data, out_->linesize);
  const size_t row = static_cast<size_t>(width_) * kChannels;
  for (int y = 0; y < height_; ++y, rgb += row) {
    const uint8_t* from = out_->data[0] + y * out_->linesize[0];
    if (on_white_)
      blend_with_white(from, width_, rgb);
    else
      std::memcpy(rgb, from, row);
  }
}

FromRgb::FromRgb(int64_t height, int64_t width, AVPixelFormat format, bool full_range)
    : height_(static_cast<int>(height)), width_(static_cast<int>(width)) {
  const auto [h, w] = padded(height_, width_, format);
  in_ = make_frame(w, h, AV_PIX_FMT_RGB24);
  out_ = make_frame(w, h, format);
  out_->color_range = full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  sws_ =
      own(sws_getContext(w, h, AV_PIX_FMT_RGB24, w, h, without_j(format), kFlags, nullptr, nullptr, nullptr));
  const int* bt601 = sws_getCoefficients(SWS_CS_ITU601);
  sws_setColorspaceDetails(sws_.get(), bt601, 1, bt601, full_range, 0, kUnit, kUnit);
}

AVFrame* FromRgb::operator()(std::span<const uint8_t> rgb) {
  const size_t row = static_cast<size_t>(width_) * kChannels;
  ensure(rgb.size() == row * static_cast<size_t>(height_), "FromRgb: expected ", height_, " rows of ", row,
         " bytes, got ", rgb.size(), " bytes");
  for (int y = 0; y < in_->height; ++y) {  // the padding repeats the last column and row
    uint8_t* to = in_->data[0] + y * in_->linesize[0];
    std::memcpy(to, rgb.data() + static_cast<size_t>(std::min(y, height_ - 1)) * row, row);
    for (int x = width_; x < in_->width; ++x)
      std::memcpy(to + static_cast<size_t>(x) * kChannels, to + row - kChannels, kChannels);
  }
  out_->height = in_->height, out_->width = in_->width;
  // An encoder may still hold the last frame's buffer.
  if (const int code = av_frame_make_writable(out_.get()); code < 0)
    fail(ErrorKind::kResource, "media: no memory for a frame: ", reason(code));
  sws_scale(sws_.get(), in_->data, in_->linesize, 0, in_->height, out_->data, out_->linesize);
  out_->height = height_, out_->width = width_;
  return out_.get();
}

}  // namespace orrery::media
