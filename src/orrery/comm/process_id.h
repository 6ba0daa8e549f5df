#pragma once
#include <string>

namespace orrery::comm {

/// Which process this is, for others that may or may not be able to see it.
struct ProcessId {
  std::string
      host;  // the machine's boot and the namespace of process numbers: equal where `pid` means the same
  int pid = 0;
  std::string start;  // when it began, in ticks: a number that is used again is another process
};

/// The process of this number, as this one sees it; it need not be there any more.
ProcessId process_id(int pid);

/// Knows when a process ends. Movable; made by watch().
class EndOfProcess {
 public:
  EndOfProcess() = default;
  explicit EndOfProcess(int fd) : fd_(fd) {}
  EndOfProcess(EndOfProcess&& other) noexcept;
  EndOfProcess& operator=(EndOfProcess&& other) noexcept;
  ~EndOfProcess();

  /// A descriptor that polls readable once the process has ended; -1 where that cannot be known (another
  /// host, another container, a kernel without pidfd_open).
  int descriptor() const { return fd_; }

 private:
  int fd_ = -1;
};

EndOfProcess watch(const ProcessId& process);

}  // namespace orrery::comm
