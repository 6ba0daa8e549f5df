#include "orrery/parallel/attention.h"

#include "orrery/base/error.h"
#include "orrery/parallel/attention_ring.h"
#include "orrery/parallel/attention_ulysses.h"
#include "orrery/parallel/tuning.h"

namespace orrery::parallel {
namespace {

void check(const comm::Group& sequence, std::span<const Qkv> streams) {
  ensure(!streams.empty(), "attention: expected at least one stream");
  const Tensor& first = streams[0].q;
  bool sharded_before = false;
  for (const Qkv& s : streams) {
    const int64_t tokens =
        s.replicated ? s.length : comm::split(s.length, sequence.size(), sequence.rank()).size();
    for (const Tensor* t : {&s.q, &s.k, &s.v})
      ensure(t->dim() == 3 && t->size(0) == tokens && t->size(1) == first.size(1) &&
                 t->size(2) == first.size(2) && t->scalar_type() == first.scalar_type(),
             "attention: expected ", first.scalar_type(), " [", tokens, ", ", first.size(1), ", ",
             first.size(2), "] for ", s.length, " tokens on rank ", sequence.rank(), " of ", sequence.size(),
             ", got ", t->scalar_type(), " ", t->sizes());
    ensure(!s.replicated || !sharded_before, "attention: expected replicated streams before sharded ones");
    sharded_before |= !s.replicated;
  }
}

/// The number of all tokens, then whatever else a call's time depends on.
Tuning::Shape shape_of(std::span<const Qkv> streams) {
  const Tensor& q = streams[0].q;
  Tuning::Shape shape = {0, q.size(1), q.size(2), static_cast<int64_t>(q.scalar_type())};
  for (const Qkv& s : streams) {
    shape[0] += s.length;
    shape.insert(shape.end(), {s.length, s.replicated});
  }
  return shape;
}

}  // namespace

std::vector<Tensor> attention(const Context& ctx, std::span<const Qkv> streams) {
  check(ctx.mesh.sequence(), streams);
  if (ctx.mesh.ulysses().size() == 1) return ring_attention(ctx.mesh, streams);
  return ctx.tuning.run(ctx.mesh, shape_of(streams), [&](const config::Chunks& chunks) {
    return ulysses_attention(ctx.mesh, streams, chunks);
  });
}

Tensor attention(const Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, int64_t length) {
  return attention(ctx, std::vector<Qkv>{{q, k, v, length}})[0];
}

}  // namespace orrery::parallel
