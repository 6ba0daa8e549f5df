#include "orrery/platform/thread.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "orrery/base/error.h"

namespace orrery::platform {
namespace {

/// How many threads a parallel loop of this thread really uses.
size_t threads_used() {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  at::parallel_for(0, 64, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  return seen.size();
}

TEST(Thread, RunsInInferenceModeUnderItsName) {
  bool inference = false;
  std::string name(16, '\0');
  ASSERT_FALSE(c10::InferenceMode::is_enabled());
  start_thread("a name of more than fifteen bytes", 1, [&] {
    inference = c10::InferenceMode::is_enabled();
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  }).join();
  EXPECT_TRUE(inference);
  EXPECT_STREQ(name.c_str(), "a name of more ");
}

TEST(Thread, ThreadsKeepTheirOwnCounts) {
  std::latch both_set(2);
  size_t used[2] = {};
  const auto body = [&](int i) {
    both_set.arrive_and_wait();  // the other thread has set another count by now
    used[i] = threads_used();
  };
  {
    const Thread one = start_thread("one", 1, [&] { body(0); });
    const Thread three = start_thread("three", 3, [&] { body(1); });
  }
  EXPECT_EQ(used[0], 1u);
  EXPECT_EQ(used[1], 3u);
}

TEST(Thread, GuardPutsTheCountBack) {
  const int before = at::get_num_threads();
  {
    const ThreadsGuard guard(before + 1);
    EXPECT_EQ(at::get_num_threads(), before + 1);
    EXPECT_EQ(threads_used(), static_cast<size_t>(before) + 1);
  }
  EXPECT_EQ(at::get_num_threads(), before);
}

TEST(Thread, JoinThrowsWhatTheFunctionThrewOnce) {
  Thread thread = start_thread("fails", 1, [] { fail(ErrorKind::kResource, "no room"); });
  try {
    thread.join();
    FAIL() << "join did not throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kResource);
    EXPECT_EQ(e.message(), "no room");
  }
  EXPECT_NO_THROW(thread.join());
}

TEST(Thread, DestructorWaits) {
  std::atomic<bool> ended = false;
  {
    Thread first = start_thread("slow", 1, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ended = true;
    });
    const Thread moved = std::move(first);
  }
  EXPECT_TRUE(ended);
}

TEST(Thread, RefusesToUseNoThread) {
  EXPECT_THROW(start_thread("none", 0, [] {}), Error);
}

}  // namespace
}  // namespace orrery::platform
