#pragma once
#include <ATen/Parallel.h>

namespace orrery::testing {

/// The number of threads of parallel regions, restored at the end of the scope.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace orrery::testing
