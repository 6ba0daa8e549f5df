#pragma once
// Collectives and exchanges of random shapes, types and strides, the same ones on every rank for equal seeds.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <random>
#include <vector>

#include "orrery/comm/collectives.h"
#include "orrery/comm/mesh.h"

namespace orrery::comm::testing {

/// What rank `from` sends rank `to` (both in the mesh) in a round: a function of its arguments, from none to
/// three tensors; some are views with strides.
inline Message random_message(uint64_t seed, int from, int to) {
  std::seed_seq words{seed, seed >> 32, static_cast<uint64_t>(from), static_cast<uint64_t>(to)};
  std::mt19937 random(words);
  const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16, at::kLong,
                                       at::kBool,  at::kDouble,   at::kByte};
  Message message;
  for (int i = pick(4); i > 0; --i) {
    Shape shape;
    for (int d = pick(4); d > 0; --d) shape.push_back(pick(8) == 0 ? 0 : 1 + pick(pick(6) == 0 ? 60 : 6));
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    Tensor t =
        (at::arange(count, at::kLong) * 37 + pick(1000)).remainder(251).to(kTypes[pick(6)]).view(shape);
    if (shape.size() > 1 && pick(2)) t = t.transpose(0, -1);
    if (!shape.empty() && pick(3) == 0) t = t.slice(0, 0, t.size(0), 2);
    message.push_back(std::move(t));
  }
  return message;
}

/// One exchange over the group of an axis, as `of_axis` numbers its members in the mesh.
inline std::unique_ptr<Exchange> random_exchange(Group& group, const std::vector<int>& of_axis,
                                                 uint64_t seed) {
  const int me = of_axis[static_cast<size_t>(group.rank())];
  std::vector<Message> to;
  std::vector<Extents> from;
  for (const int peer : of_axis) {
    to.push_back(random_message(seed, me, peer));
    from.push_back(extents_of(random_message(seed, peer, me)));
  }
  return group.exchange(std::move(to), from);
}

/// Everything that this rank receives in `rounds` rounds.
inline std::vector<Tensor> random_exchanges(const Mesh& mesh, uint64_t seed, int rounds) {
  Group* groups[] = {&mesh.cfg(),      &mesh.ring(),    &mesh.ulysses(),
                     &mesh.sequence(), &mesh.control(), &mesh.world()};
  std::mt19937_64 random(seed);
  std::vector<Tensor> received;
  for (int round = 0; round < rounds; ++round) {
    const size_t axis = random() % kAxes.size();
    Group& group = *groups[axis];
    const auto of_axis = members(mesh.shape(), axis, mesh.rank());
    const uint64_t what = random(), seeds[] = {random(), random()};
    const auto root = static_cast<int>(random() % of_axis.size());
    const int64_t total = static_cast<int64_t>(random() % 9);
    const auto sizes = split_sizes(total, group.size());
    const auto [begin, end] = split(total, group.size(), group.rank());
    const Tensor whole = at::arange(total * 5, at::kFloat).view({total, 5}).t() * (mesh.rank() + 1);
    switch (what % 6) {
      case 0:
        received.push_back(all_gather(group, whole.slice(1, begin, end), -1, sizes));
        break;
      case 1:
        if (auto all = gather_to(group, root, whole.slice(1, begin, end), 1, sizes); all.defined())
          received.push_back(std::move(all));
        break;
      case 2:
        received.push_back(broadcast(group, root, whole, {{5, total}, at::kFloat}));
        break;
      case 3: {
        const int before = of_axis[static_cast<size_t>((group.rank() + group.size() - 1) % group.size())];
        auto message = shift(group, random_message(seeds[0], mesh.rank(), 0),
                             extents_of(random_message(seeds[0], before, 0)))
                           .wait();
        std::ranges::move(message, std::back_inserter(received));
        break;
      }
      default: {  // two under way at once, the second one waited for first
        auto first = random_exchange(group, of_axis, seeds[0]);
        auto second = random_exchange(group, of_axis, seeds[1]);
        for (auto* each : {second.get(), first.get()})
          for (auto& message : each->wait()) std::ranges::move(message, std::back_inserter(received));
      }
    }
  }
  return received;
}

inline bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() && at::equal(x, y);
  });
}

}  // namespace orrery::comm::testing
