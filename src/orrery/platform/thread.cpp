#include "orrery/platform/thread.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <pthread.h>

#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "orrery/base/error.h"

namespace orrery::platform {
// On the heap, so that a Thread can move while its thread writes `failure`, which is read only after the
// join.
struct Thread::State {
  std::exception_ptr failure;
  std::thread thread;

  ~State() {
    if (thread.joinable()) thread.join();
  }
};

Thread::Thread(std::unique_ptr<State> state) : state_(std::move(state)) {}
Thread::Thread(Thread&&) noexcept = default;
Thread& Thread::operator=(Thread&&) noexcept = default;
Thread::~Thread() = default;

void Thread::join() {
  if (!state_ || !state_->thread.joinable()) return;
  state_->thread.join();
  if (const auto failure = std::exchange(state_->failure, nullptr)) std::rethrow_exception(failure);
}

Thread start_thread(const std::string& name, int threads, std::function<void()> fn) {
  ensure(threads >= 1, "start_thread: expected at least 1 thread for ", name, ", got ", threads);
  auto state = std::make_unique<Thread::State>();
  auto body = [state = state.get(), name, threads, fn = std::move(fn)] {
    try {
      ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
      const c10::InferenceMode inference;
      set_threads(threads);
      fn();
    } catch (...) {
      state->failure = std::current_exception();
    }
  };
  try {
    state->thread = std::thread(std::move(body));
  } catch (const std::system_error& e) {
    fail(ErrorKind::kResource, "cannot start thread ", name, ": ", e.what());
  }
  return Thread(std::move(state));
}

void set_threads(int threads) {
  ensure(threads >= 1, "set_threads: expected at least 1 thread, got ", threads);
  // The first parallel call of a thread takes the count that any thread set last, process-wide. There is one
  // such "first call" in libtorch and another in the header that is inlined here: have both behind us before
  // setting our own.
  at::get_num_threads();
  at::internal::lazy_init_num_threads();
  at::set_num_threads(threads);
}

ThreadsGuard::ThreadsGuard(int threads) : previous_(at::get_num_threads()) { set_threads(threads); }
ThreadsGuard::~ThreadsGuard() { set_threads(previous_); }

}  // namespace orrery::platform
