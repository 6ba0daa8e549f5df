#include "orrery/comm/process_id.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What the link says, or "" where it cannot be read.
std::string link_of(const char* path) {
  char target[128];
  const ssize_t size = ::readlink(path, target, sizeof target);
  return size > 0 ? std::string(target, static_cast<size_t>(size)) : "";
}

/// Field 22 of /proc/PID/stat (proc(5)), counted behind the name, which may hold spaces; "" if there is no
/// such process.
std::string start_of(int pid) {
  const std::string stat = text_of(concat("/proc/", pid, "/stat"));
  size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  return at == std::string::npos ? "" : stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

std::string this_host() {
  std::string boot = text_of("/proc/sys/kernel/random/boot_id");
  if (!boot.empty() && boot.back() == '\n') boot.pop_back();
  return concat(boot, "/", link_of("/proc/self/ns/pid"));
}

}  // namespace

ProcessId process_id(int pid) { return {this_host(), pid, start_of(pid)}; }

EndOfProcess::EndOfProcess(EndOfProcess&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

EndOfProcess& EndOfProcess::operator=(EndOfProcess&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

EndOfProcess::~EndOfProcess() {
  if (fd_ >= 0) ::close(fd_);
}

EndOfProcess watch(const ProcessId& process) {
  if (process.host != this_host()) return {};
  // The system call by number: glibc before 2.36 has no name for it.
  EndOfProcess end(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  const bool gone = end.descriptor() < 0 ? errno == ESRCH : start_of(process.pid) != process.start;
  return gone ? EndOfProcess(::eventfd(1, EFD_CLOEXEC)) : std::move(end);  // readable from the start
}

}  // namespace orrery::comm
