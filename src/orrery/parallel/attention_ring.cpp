#include "orrery/parallel/attention_ring.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "orrery/comm/collectives.h"
#include "orrery/ops/attention.h"

namespace orrery::parallel {
namespace {

using comm::Message;

/// What a place asks with: all of its sharded tokens, its share of replicated ones.
std::vector<Tensor> queries_of(const comm::Group& ring, std::span<const Qkv> streams) {
  std::vector<Tensor> queries;
  for (const Qkv& s : streams) {
    const auto share =
        s.replicated ? comm::split(s.length, ring.size(), ring.rank()) : comm::Range{0, s.q.size(0)};
    queries.push_back(s.q.narrow(0, share.begin, share.size()));
  }
  return queries;
}

/// Keys and values of the streams that are replicated, or of those that are not; empty if there are none.
Message keys_of(std::span<const Qkv> streams, bool replicated) {
  std::vector<Tensor> keys, values;
  for (const Qkv& s : streams) {
    if (s.replicated != replicated || s.k.size(0) == 0) continue;
    keys.push_back(s.k), values.push_back(s.v);
  }
  return keys.empty() ? Message{} : Message{joined(keys), joined(values)};
}

/// What keys_of(streams, false) is on another place.
comm::Extents extents_at(const comm::MeshShape& mesh, std::span<const Qkv> streams, int ring) {
  int64_t tokens = 0;
  for (const Qkv& s : streams)
    if (!s.replicated) tokens += ring_block(mesh, s.length, ring).size();
  const TensorSpec spec{{tokens, streams[0].k.size(1), streams[0].k.size(2)}, streams[0].k.scalar_type()};
  return tokens == 0 ? comm::Extents{} : comm::Extents{spec, spec};
}

Message appended(const Message& first, const Message& rest) {
  if (first.empty()) return rest;
  if (rest.empty()) return first;
  return {joined({first[0], rest[0]}), joined({first[1], rest[1]})};
}

/// Attention of q to the blocks of all places; `block` is this place's own, `replicated` belongs to place
/// 0's.
Tensor around(const comm::Mesh& mesh, std::span<const Qkv> streams, const Tensor& q) {
  comm::Group& ring = mesh.ring();
  const int places = ring.size();
  const Message replicated = keys_of(streams, true);
  Message block = keys_of(streams, false);
  std::optional<ops::PartialAttention> sum;
  for (int hop = 0; hop < places; ++hop) {
    const int owner = (ring.rank() + places - hop) % places, next = (owner + places - 1) % places;
    std::optional<comm::Shift> arriving;
    if (hop + 1 < places) arriving = comm::shift(ring, block, extents_at(mesh.shape(), streams, next));
    const Message keys = owner == 0 ? appended(replicated, block) : block;
    if (!keys.empty()) {
      auto part = ops::partial_attention(q, keys[0], keys[1]);
      if (sum)
        ops::merge(*sum, part);
      else
        sum = std::move(part);
    }
    if (arriving) block = arriving->wait();
  }
  return sum ? sum->out.to(q.scalar_type()) : at::zeros(q.sizes(), q.options());
}

}  // namespace

comm::Range ring_block(const comm::MeshShape& mesh, int64_t length, int ring) {
  const int64_t parts = mesh.ring * mesh.ulysses, first = ring * mesh.ulysses;
  return {comm::split(length, parts, first).begin, comm::split(length, parts, first + mesh.ulysses - 1).end};
}

Tensor joined(const std::vector<Tensor>& pieces) {
  return pieces.size() == 1 ? pieces[0] : at::cat(pieces, 0);
}

std::vector<Tensor> ring_attention(const comm::Mesh& mesh, std::span<const Qkv> streams) {
  comm::Group& ring = mesh.ring();
  const auto queries = queries_of(ring, streams);
  const Tensor all = around(mesh, streams, joined(queries));
  std::vector<Tensor> results;
  int64_t begin = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    const Tensor mine = all.narrow(0, begin, queries[i].size(0));
    begin += mine.size(0);
    results.push_back(streams[i].replicated
                          ? comm::all_gather(ring, mine, 0, comm::split_sizes(streams[i].length, ring.size()))
                          : mine);
  }
  return results;
}

}  // namespace orrery::parallel
