#include "orrery/parallel/cost.h"

#include "orrery/comm/split.h"
#include "orrery/parallel/attention_ring.h"

namespace orrery::parallel {

using comm::split;

Cost& Cost::operator+=(const Cost& other) {
  bytes += other.bytes, exchanges += other.exchanges, flops += other.flops;
  return *this;
}

Cost operator*(int64_t times, Cost cost) {
  return {times * cost.bytes, times * cost.exchanges, static_cast<double>(times) * cost.flops};
}

Cost attention_cost(const comm::MeshShape& mesh, int rank, const AttentionSize& size) {
  const int parts = mesh.ring * mesh.ulysses;
  const int place = rank % parts / mesh.ulysses, own = rank % mesh.ulysses;
  const auto tokens = [&](int64_t part) { return split(size.tokens, parts, part).size(); };
  const auto heads = [&](int64_t u) { return split(size.heads, mesh.ulysses, u).size(); };
  const auto block = [&](int at) { return ring_block(mesh, size.tokens, at).size(); };
  const int64_t head_bytes = size.head_dim * size.element_bytes;
  Cost cost;
  if (mesh.ulysses > 1) {
    cost.exchanges += 2;
    for (int64_t u = 0; u < mesh.ulysses; ++u)
      if (u != own)
        cost.bytes += (3 * tokens(place * mesh.ulysses + own) * heads(u) +
                       (tokens(place * mesh.ulysses + u) + size.replicated) * heads(own)) *
                      head_bytes;
  }
  cost.exchanges += mesh.ring - 1;
  // Every block goes on to the next place but the one that the next place began with.
  for (int at = 0; at < mesh.ring; ++at)
    if (mesh.ring > 1 && at != (place + 1) % mesh.ring) cost.bytes += 2 * block(at) * heads(own) * head_bytes;
  // Each place answers its share of the replicated queries, then all have all.
  const int64_t share = split(size.replicated, mesh.ring, place).size();
  if (size.replicated > 0 && mesh.ring > 1) {
    cost.exchanges += 1;
    cost.bytes += (mesh.ring - 1) * share * heads(own) * head_bytes;
  }
  cost.flops = 4.0 * static_cast<double>(block(place) + share) *
               static_cast<double>(size.tokens + size.replicated) *
               static_cast<double>(heads(own) * size.head_dim);
  return cost;
}

}  // namespace orrery::parallel
