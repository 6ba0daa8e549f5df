#pragma once
#include <string>
#include <vector>

namespace orrery::app {

/// Starts this program `ranks` times with `command` and its words, as one process per rank of this host, and
/// waits for all of them. Returns the exit code on which they agree. Where they do not, or one is killed, the
/// rank that went first is named with its last operation, the others are ended within seconds, and the code
/// is that of a peer error. SIGINT and SIGTERM go on to every rank, each time. The ranks die with this
/// process.
int launch_processes(const std::string& command, const std::vector<std::string>& words, int ranks);

}  // namespace orrery::app
