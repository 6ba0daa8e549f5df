#include "orrery/comm/address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "orrery/base/error.h"

namespace orrery::comm {
namespace {

/// The own end of a datagram socket that is connected to the address, or "".
std::string own_end(const addrinfo& target) {
  const int fd = ::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[NI_MAXHOST];
  const bool found = ::connect(fd, target.ai_addr, target.ai_addrlen) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
                     ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host, nullptr, 0,
                                   NI_NUMERICHOST) == 0;
  ::close(fd);
  return found ? host : "";
}

}  // namespace

std::string address_towards(const std::string& target) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  // Any port does: connecting a datagram socket only looks the way up.
  const int failed = ::getaddrinfo(target.c_str(), "9", &hints, &found);
  if (failed) fail(ErrorKind::kResource, "cannot find host ", target, ": ", ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  for (const addrinfo* each = found; each; each = each->ai_next)
    if (auto own = own_end(*each); !own.empty()) return own;
  fail(ErrorKind::kResource, "no way from this host to ", target, ": ", std::strerror(errno));
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace orrery::comm
