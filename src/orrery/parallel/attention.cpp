#include "orrery/parallel/attention.h"

#include <ATen/ops/cat.h>

#include "orrery/ops/attention.h"

namespace orrery::parallel {
namespace {

using comm::Extents;
using comm::Group;
using comm::Message;
using comm::split;

TensorSpec spec(const Tensor& like, int64_t tokens, int64_t heads) {
  return {{tokens, heads, like.size(2)}, like.scalar_type()};
}

/// [S_r, N, D] each → [S, N_r, D] each.
Message heads_for_tokens(Group& group, const Message& mine, int64_t length) {
  const int64_t heads = mine[0].size(1);
  const auto own_heads = split(heads, group.size(), group.rank());
  std::vector<Message> to(group.size());
  std::vector<Extents> from(group.size());
  for (int i = 0; i < group.size(); ++i) {
    const auto their_heads = split(heads, group.size(), i);
    const auto their_tokens = split(length, group.size(), i);
    for (const auto& t : mine) {
      to[i].push_back(t.narrow(1, their_heads.begin, their_heads.size()));
      from[i].push_back(spec(t, their_tokens.size(), own_heads.size()));
    }
  }
  const auto parts = group.exchange(std::move(to), from)->wait();
  Message whole;
  for (size_t t = 0; t < mine.size(); ++t) {
    std::vector<Tensor> pieces;
    for (const auto& part : parts) pieces.push_back(part[t]);
    whole.push_back(at::cat(pieces, 0));
  }
  return whole;
}

/// [S, N_r, D] → [S_r, N, D].
Tensor tokens_for_heads(Group& group, const Tensor& mine, int64_t heads) {
  const int64_t length = mine.size(0);
  const auto own_tokens = split(length, group.size(), group.rank());
  std::vector<Message> to(group.size());
  std::vector<Extents> from(group.size());
  for (int i = 0; i < group.size(); ++i) {
    const auto their_tokens = split(length, group.size(), i);
    to[i].push_back(mine.narrow(0, their_tokens.begin, their_tokens.size()));
    from[i].push_back(spec(mine, own_tokens.size(), split(heads, group.size(), i).size()));
  }
  std::vector<Tensor> pieces;
  for (auto& part : group.exchange(std::move(to), from)->wait()) pieces.push_back(part[0]);
  return at::cat(pieces, 1);
}

}  // namespace

Tensor attention(const Context& ctx, const Tensor& q, const Tensor& k, const Tensor& v, int64_t length) {
  Group& group = ctx.mesh.ulysses();
  if (group.size() == 1) return ops::attention(q, k, v);
  const Message whole = heads_for_tokens(group, {q, k, v}, length);
  return tokens_for_heads(group, ops::attention(whole[0], whole[1], whole[2]), q.size(1));
}

}  // namespace orrery::parallel
