#pragma once
#include <chrono>
#include <functional>
#include <random>

#include "orrery/comm/group.h"

namespace orrery::comm {

// Decorators for tests, put around groups by the `decorate` of make_thread_meshes and make_process_mesh.

/// A group that calls `fault` before its exchange number `at` (from 1) and is otherwise the group inside it.
/// The fault may throw, sleep or end the process.
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

/// A group that sleeps before every exchange and every wait, each time for a random while of up to `at_most`,
/// and is otherwise the group inside it: ranks then meet in every order that is possible.
class Delayed final : public Group {
 public:
  Delayed(std::unique_ptr<Group> inside, uint64_t seed, std::chrono::microseconds at_most);
  int rank() const override { return inside_->rank(); }
  int size() const override { return inside_->size(); }
  std::unique_ptr<Exchange> exchange(std::vector<Message> to, std::span<const Extents> from) override;

 private:
  std::chrono::microseconds a_while();

  std::unique_ptr<Group> inside_;
  std::mt19937_64 random_;
  std::uniform_int_distribution<int64_t> length_;
};

}  // namespace orrery::comm
