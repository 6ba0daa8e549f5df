#pragma once
#include <c10/core/CPUAllocator.h>

#include <cstdint>

namespace orrery::ops::cpu {

/// A thread's scratch memory, kept between calls: page faults would cost more than the work done in it.
class Buffer {
 public:
  /// At least `count` floats of undefined content, aligned to 64 bytes; valid until the next call.
  float* floats(int64_t count) {
    if (count > size_) {
      memory_ = {};
      memory_ = c10::GetCPUAllocator()->allocate(static_cast<size_t>(count) * sizeof(float));
      size_ = count;
    }
    return static_cast<float*>(memory_.get());
  }

 private:
  c10::DataPtr memory_;
  int64_t size_ = 0;
};

}  // namespace orrery::ops::cpu
