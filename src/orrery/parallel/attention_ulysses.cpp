#include "orrery/parallel/attention_ulysses.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "orrery/parallel/attention_ring.h"

namespace orrery::parallel {
namespace {

using comm::Extents;
using comm::Message;
using comm::Range;
using comm::split;

TensorSpec spec(const Tensor& like, int64_t tokens, int64_t heads) {
  return {{tokens, heads, like.size(2)}, like.scalar_type()};
}

/// Chunk `index` of `count` of every rank's heads.
struct Chunk {
  int64_t index, count;
};

/// One chunk on its way: sent to the ranks that attend when it is made, then computed, then collected. `out`
/// and `streams` outlive it.
class RoundTrip {
 public:
  RoundTrip(const comm::Mesh& mesh, std::span<const Qkv> streams, Chunk chunk)
      : mesh_(mesh), streams_(streams), chunk_(chunk) {
    const auto own = heads_of(group().rank());
    std::vector<Message> to(size());
    std::vector<Extents> from(size());
    for (int i = 0; i < group().size(); ++i) {
      const auto theirs = heads_of(i);
      for (const Qkv& s : streams_) {
        if (s.replicated) continue;
        for (const Tensor* t : {&s.q, &s.k, &s.v}) {
          to[i].push_back(t->narrow(1, theirs.begin, theirs.size()));
          from[i].push_back(spec(*t, tokens_of(s, i).size(), own.size()));
        }
      }
    }
    exchange_ = group().exchange(std::move(to), from);
  }

  /// Waits for this rank's heads, attends, and sends the results to where their tokens are.
  void compute() {
    const auto results = ring_attention(mesh_, arrived());
    const auto own = tokens_held();
    std::vector<Message> to(size());
    std::vector<Extents> from(size());
    for (int i = 0; i < group().size(); ++i)
      for (size_t s = 0; s < streams_.size(); ++s) {
        const auto theirs = streams_[s].replicated ? Range{0, streams_[s].length} : place_of(streams_[s], i);
        to[i].push_back(results[s].narrow(0, theirs.begin, theirs.size()));
        from[i].push_back(spec(results[s], own[s], heads_of(i).size()));
      }
    exchange_ = group().exchange(std::move(to), from);
  }

  /// Waits for the results of this rank's tokens and puts them among those of the other chunks.
  void collect(const std::vector<Tensor>& out) {
    const auto messages = exchange_->wait();
    for (int i = 0; i < group().size(); ++i) {
      const auto heads = heads_of(i);
      for (size_t s = 0; s < out.size(); ++s)
        out[s].narrow(1, heads.begin, heads.size()).copy_(messages[i][s]);
    }
  }

 private:
  comm::Group& group() const { return mesh_.ulysses(); }
  size_t size() const { return static_cast<size_t>(group().size()); }

  /// The heads of this chunk that rank i of the group attends with.
  Range heads_of(int i) const {
    const auto all = split(streams_[0].q.size(1), group().size(), i);
    const auto part = split(all.size(), chunk_.count, chunk_.index);
    return {all.begin + part.begin, all.begin + part.end};
  }

  /// The tokens of a sharded stream that rank i of the group holds …
  Range tokens_of(const Qkv& s, int i) const {
    const auto& mesh = mesh_.shape();
    return split(s.length, mesh.ring * mesh.ulysses, mesh_.ring().rank() * mesh.ulysses + i);
  }

  /// … and where they lie among those of the group.
  Range place_of(const Qkv& s, int i) const {
    const int64_t first = tokens_of(s, 0).begin;
    const auto tokens = tokens_of(s, i);
    return {tokens.begin - first, tokens.end - first};
  }

  std::vector<int64_t> tokens_held() const {
    std::vector<int64_t> held;
    for (const Qkv& s : streams_) held.push_back(s.q.size(0));
    return held;
  }

  /// The group's tokens with this rank's heads of the chunk.
  std::vector<Qkv> arrived() {
    const auto messages = exchange_->wait();
    const auto own = heads_of(group().rank());
    std::vector<Qkv> whole;
    size_t next = 0;
    const auto take = [&] {
      std::vector<Tensor> pieces;
      for (const Message& message : messages) pieces.push_back(message[next]);
      ++next;
      return joined(pieces);
    };
    for (const Qkv& s : streams_) {
      Qkv stream{{}, {}, {}, s.length, s.replicated};
      for (auto member : {&Qkv::q, &Qkv::k, &Qkv::v})
        stream.*member = s.replicated ? (s.*member).narrow(1, own.begin, own.size()) : take();
      whole.push_back(std::move(stream));
    }
    return whole;
  }

  const comm::Mesh& mesh_;
  std::span<const Qkv> streams_;
  Chunk chunk_;
  std::unique_ptr<comm::Exchange> exchange_;
};

void one_after_another(const comm::Mesh& mesh, std::span<const Qkv> streams, int64_t count,
                       const std::vector<Tensor>& out) {
  for (int64_t i = 0; i < count; ++i) {
    RoundTrip trip(mesh, streams, {i, count});
    trip.compute();
    trip.collect(out);
  }
}

void overlapped(const comm::Mesh& mesh, std::span<const Qkv> streams, int64_t count,
                const std::vector<Tensor>& out) {
  std::unique_ptr<RoundTrip> last, next = std::make_unique<RoundTrip>(mesh, streams, Chunk{0, count});
  for (int64_t i = 0; i < count; ++i) {
    auto trip = std::move(next);
    if (i + 1 < count) next = std::make_unique<RoundTrip>(mesh, streams, Chunk{i + 1, count});
    trip->compute();
    if (last) last->collect(out);
    last = std::move(trip);
  }
  last->collect(out);
}

}  // namespace

std::vector<Tensor> ulysses_attention(const comm::Mesh& mesh, std::span<const Qkv> streams,
                                      const config::Chunks& chunks) {
  const int64_t most = split(streams[0].q.size(1), mesh.ulysses().size(), 0).size();
  const int64_t count = std::clamp<int64_t>(chunks.count, 1, std::max<int64_t>(most, 1));
  std::vector<Tensor> out;
  for (const Qkv& s : streams) out.push_back(at::empty(s.q.sizes(), s.q.options()));
  (chunks.overlap ? overlapped : one_after_another)(mesh, streams, count, out);
  return out;
}

}  // namespace orrery::parallel
