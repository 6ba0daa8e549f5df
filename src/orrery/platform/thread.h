#pragma once
#include <functional>
#include <memory>
#include <string>

namespace orrery::platform {

/// A running thread. The destructor waits for it and drops what its function threw (join() is how failures
/// are heard of). A Thread that has been moved from owns nothing.
class Thread {
 public:
  struct State;
  explicit Thread(std::unique_ptr<State> state);
  Thread(Thread&&) noexcept;
  Thread& operator=(Thread&&) noexcept;
  ~Thread();

  /// Waits for the end of the thread and throws what its function threw. A second call does nothing.
  void join();

 private:
  std::unique_ptr<State> state_;
};

/// Runs `fn` on a new thread: the one way in which orrery starts threads. The thread is in inference mode,
/// uses `threads` threads for tensor operations (≥ 1) and carries the name that debuggers show (cut to 15
/// bytes). What `fn` throws is kept for join(). Error of kind resource if the system refuses the thread.
Thread start_thread(const std::string& name, int threads, std::function<void()> fn);

/// Gives the calling thread `threads` threads for tensor operations (≥ 1); other threads keep theirs.
void set_threads(int threads);

/// Sets the calling thread's count and puts the previous one back.
class ThreadsGuard {
 public:
  explicit ThreadsGuard(int threads);
  ~ThreadsGuard();
  ThreadsGuard(const ThreadsGuard&) = delete;
  ThreadsGuard& operator=(const ThreadsGuard&) = delete;

 private:
  int previous_;
};

}  // namespace orrery::platform
