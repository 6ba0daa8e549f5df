#include "orrery/parallel/run.h"

#include "orrery/comm/collectives.h"

namespace orrery::parallel {

Tokens shard(const comm::Group& group, const Tokens& tokens) {
  const auto part = comm::split(tokens.values.size(0), group.size(), group.rank());
  const auto mine = [&](const Tensor& t) { return t.narrow(0, part.begin, part.size()); };
  return {mine(tokens.values), mine(tokens.rope), mine(tokens.frame)};
}

Tensor gather(comm::Group& group, const Tensor& mine, int64_t length) {
  return comm::all_gather(group, mine, 0, comm::split_sizes(length, group.size()));
}

}  // namespace orrery::parallel
