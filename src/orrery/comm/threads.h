#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/comm/group.h"
#include "orrery/comm/ranks.h"

namespace orrery::comm {

/// The ranks that are threads of this process, as far as they must know of each other: who waits for what,
/// who has ended. Shared by all groups over them.
class ThreadRanks final : public Ranks {
 public:
  explicit ThreadRanks(int size);
  ~ThreadRanks() override;
  std::string fail(int rank, std::string_view reason) override;

  /// If others wait for the rank, they fail.
  void finish(int rank) override;

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// One group over the given ranks (distinct, in group order), seen from each of its members: [i] is for
/// members[i]. Messages are handed over by pointer, without a copy. Each rank is one thread; different ranks
/// use their own view concurrently. Besides the errors of group.h: internal, if no rank can go on because
/// they disagree about what comes next.
std::vector<std::unique_ptr<Group>> make_thread_group(std::shared_ptr<ThreadRanks> ranks, std::string name,
                                                      std::vector<int> members);

}  // namespace orrery::comm
