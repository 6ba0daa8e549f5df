#include "orrery/media/ffmpeg.h"

#include <cstdarg>
#include <mutex>

#include "orrery/base/log.h"
#include "orrery/base/text.h"

namespace orrery::media {
namespace {

void forward(void*, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING) return;
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  log::debug("FFmpeg: ", strip(line));
}

}  // namespace

std::string reason(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE];
  av_strerror(code, text, sizeof text);
  return text;
}

Owned<AVIOContext> open_file(const std::string& path, int flags, int* code) {
  AVIOContext* io = nullptr;
  *code = avio_open2(&io, ("file:" + path).c_str(), flags, nullptr, nullptr);
  return Owned<AVIOContext>(*code < 0 ? nullptr : io);
}

void quiet() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(forward); });
}

}  // namespace orrery::media
