// What processes know of each other's ends and addresses.
#include "orrery/comm/process_id.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "orrery/base/error.h"
#include "orrery/comm/address.h"

namespace orrery::comm {
namespace {

bool has_ended(const EndOfProcess& end) {
  pollfd of{end.descriptor(), POLLIN, 0};
  return ::poll(&of, 1, 0) == 1;
}

TEST(EndOfProcess, PollsReadableOnceTheProcessHasEnded) {
  char name[] = "sleep", length[] = "1000";
  char* argv[] = {name, length, nullptr};
  pid_t child = 0;
  ASSERT_EQ(::posix_spawnp(&child, name, nullptr, nullptr, argv, environ), 0);
  const ProcessId id = process_id(child);
  EXPECT_TRUE(has_ended(watch({id.host, child, "0"}))) << "another process had this number";
  const EndOfProcess end = watch(id);
  ASSERT_GE(end.descriptor(), 0);
  EXPECT_FALSE(has_ended(end));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_ended(end));
  EXPECT_TRUE(has_ended(watch(id))) << "gone before the watch began";
}

TEST(EndOfProcess, IsUnknownElsewhere) {
  EXPECT_EQ(watch({"another host", ::getpid(), "1"}).descriptor(), -1);
}

TEST(Address, IsTheOwnEndOfTheWay) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_TRUE(is_loopback(address_towards("localhost")));
  EXPECT_FALSE(is_loopback("10.1.2.3"));
  EXPECT_THROW(address_towards("no such host"), Error);
}

}  // namespace
}  // namespace orrery::comm
