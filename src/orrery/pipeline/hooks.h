#pragma once
#include <functional>
#include <string>

#include "orrery/base/tensor.h"
#include "orrery/comm/run_ranks.h"

namespace orrery::pipeline {

/// How the caller follows a run and ends it early. Called on the thread that started the run; any may be
/// empty.
struct Hooks {
  std::function<void(const std::string& stage, int64_t step, int64_t steps)> progress;
  std::function<bool()> cancelled;

  /// Hears at once that a rank that is a thread has failed, on that thread, while others may still compute.
  comm::OnFailure failed = {};

  /// Whether finished chunks may be kept in files beside request.output, for a run that goes on (resume).
  bool keeps_chunks = false;

  /// Sees what a run computes on its way, under names that are the same on any plan: "text", "negative text",
  /// "block N" and "negative block N" of the first step's first kObservedBlocks, "step N", "pixels N"; "chunk
  /// K " before them in a later chunk of a Transfer. With ranks that are processes, all of them observe or
  /// none; those other than rank 0's see parts only.
  std::function<void(const std::string& what, const Tensor& value)> observe = {};
  static constexpr int64_t kObservedBlocks = 3;

  void report(const std::string& stage, int64_t step = 0, int64_t steps = 0) const {
    if (progress) progress(stage, step, steps);
  }
  void show(const std::string& what, const Tensor& value) const {
    if (observe && value.defined()) observe(what, value);
  }
  /// Throws an Error of kind cancelled if the caller asks for it.
  void check() const;
};

}  // namespace orrery::pipeline
