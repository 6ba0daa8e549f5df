#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/comm/group.h"

namespace orrery::comm {

/// The ranks that are threads of this process, as far as they must know of each other: who waits for what,
/// who has ended. Shared by all groups over them; its functions may be called on any thread.
class ThreadRanks;

std::shared_ptr<ThreadRanks> make_thread_ranks(int size);

/// Says that `rank` makes no more exchanges because of `reason`: from now on every waiting or later exchange,
/// of every rank and in every group, throws an Error of kind peer that names this rank, its last operation
/// and the reason. The first failure is the one that is told.
void fail(ThreadRanks& ranks, int rank, std::string_view reason);

/// Says that `rank` has done its work. If others wait for it, they fail as above.
void finish(ThreadRanks& ranks, int rank);

/// One group over the given ranks (distinct, in group order), seen from each of its members: [i] is for
/// members[i]. Messages are handed over by pointer, without a copy. Each rank is one thread; different ranks
/// use their own view concurrently. Besides the errors of group.h: internal, if no rank can go on because
/// they disagree about what comes next.
std::vector<std::unique_ptr<Group>> make_thread_group(std::shared_ptr<ThreadRanks> ranks, std::string name,
                                                      std::vector<int> members);

}  // namespace orrery::comm
