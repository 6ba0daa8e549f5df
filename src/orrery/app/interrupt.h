#pragma once

namespace orrery::app {

/// From now on the first SIGINT or SIGTERM only sets a flag, and the second ends the process with exit code
/// 130.
void watch_interrupts();

/// Whether the first one has come. Any thread.
bool interrupted();

}  // namespace orrery::app
