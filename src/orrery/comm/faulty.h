#pragma once
#include <functional>

#include "orrery/comm/group.h"

namespace orrery::comm {

/// A group that calls `fault` before its exchange number `at` (from 1) and is otherwise the group inside it.
/// The fault may throw, sleep or end the process: tests of failures inject it through the `decorate` of
/// make_thread_meshes.
class Faulty final : public Group {
 public:
  Faulty(std::unique_ptr<Group> inside, int64_t at, std::function<void()> fault);
  int rank() const override { return inside_->rank(); }
  int size() const override { return inside_->size(); }
  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override;

 private:
  std::unique_ptr<Group> inside_;
  int64_t left_;
  std::function<void()> fault_;
};

}  // namespace orrery::comm
