#include "orrery/app/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "orrery/base/error.h"

namespace orrery::app {
namespace {

std::atomic<bool> flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_signal(int) {
  if (flag.exchange(true)) ::_exit(exit_code(ErrorKind::kCancelled));
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return flag; }

}  // namespace orrery::app
