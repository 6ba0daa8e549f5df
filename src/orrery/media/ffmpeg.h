#pragma once
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

#include "orrery/base/error.h"

// Owners for FFmpeg's objects; internal to media/.
namespace orrery::media {

struct FfmpegDelete {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVIOContext* p) const { avio_close(p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};

template <class T>
using Owned = std::unique_ptr<T, FfmpegDelete>;

/// Result of an allocation; running out of memory is an Error of kind resource.
template <class T>
Owned<T> own(T* p) {
  if (!p) fail(ErrorKind::kResource, "media: out of memory");
  return Owned<T>(p);
}

/// What FFmpeg says about a negative return code.
std::string reason(int code);

/// The local file of that name, whatever characters the name has: FFmpeg would take "http:…" or "concat:…"
/// for a protocol. flags as for avio_open2. Null with the code in *code on failure.
Owned<AVIOContext> open_file(const std::string& path, int flags, int* code);

/// Sends FFmpeg's own messages to log::debug instead of stderr; once per process.
void quiet();

}  // namespace orrery::media
