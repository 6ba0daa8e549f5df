#pragma once
#include <string>

namespace orrery::comm {

/// This host's address, in numbers, on the way to `target`, as the system would choose it; nothing is sent.
/// Error of kind resource if there is no way.
std::string address_towards(const std::string& target);

/// Is it one that other hosts cannot reach (127.x.x.x, ::1)?
bool is_loopback(const std::string& address);

}  // namespace orrery::comm
