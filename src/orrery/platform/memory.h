#pragma once
#include <cstdint>
#include <string>

namespace orrery::platform {

/// Bytes of main memory.
struct Memory {
  int64_t total = 0;
  int64_t available =
      0;  // what can be allocated before the system swaps or kills; clean page cache counts as available
};

/// The host's memory, or less where a control group (container, batch job) grants less. `root` stands for
/// "/", for tests.
Memory system_memory(const std::string& root = "");

/// Resident bytes of this process, now and at their highest. Mapped weight files count as far as they have
/// been touched.
int64_t current_rss();
int64_t peak_rss();

/// Makes malloc keep the large buffers that it is given back, so that activations do not fault their pages in
/// anew at every operation, on any thread. Call once, before the process starts its first thread: arenas that
/// exist stay.
void tune_malloc();

/// Gives free heap memory back to the system: after a stage whose buffers are not needed again.
void release_free_memory();

}  // namespace orrery::platform
